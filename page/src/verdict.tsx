// The verdict of the oracles, its causes, the transactions involved, and the findings of a campaign.

import type { Finding, Moment } from "./documents";

const TRANSACTIONS_SHOWN = 6;

export function VerdictPanel({ moment }: { moment: Moment }) {
  const { timeline, causes } = moment;
  const transactions = timeline.transactions.slice(-TRANSACTIONS_SHOWN);
  const earlier = timeline.transactions.length - transactions.length;
  return (
    <section class="panel" id="verdict">
      <h2>Verdict of {moment.id}</h2>
      {timeline.objections.length === 0 && <p class="right">No oracle reports a violation.</p>}
      {timeline.objections.map((objection) => (
        <p class="wrong" key={objection.oracle}>
          <strong>{objection.oracle}</strong>: {objection.message}
        </p>
      ))}
      {timeline.reported_loss !== null && <p>Recovery reports data loss: {timeline.reported_loss}</p>}
      {causes.length > 0 && <pre class="causes">{causes.join("\n")}</pre>}
      {transactions.length > 0 && (
        <ul>
          {transactions.map((one) => (
            <li key={one.tx}>
              transaction {one.tx} (core {one.core}
              {one.thread === null ? "" : `, thread ${one.thread}`}
              {one.operation === null ? "" : `, operation ${one.operation}`}): {one.state}
            </li>
          ))}
          {earlier > 0 && <li>and {earlier} earlier transactions</li>}
        </ul>
      )}
      <p class="faint">The same on the command line:</p>
      <pre class="command">{moment.command}</pre>
    </section>
  );
}

export function Findings(props: { findings: Finding[]; current: string; onOpen: (id: string) => void }) {
  const { findings, current, onOpen } = props;
  if (findings.length === 0) return null;
  return (
    <section class="panel" id="findings">
      <h2>Findings</h2>
      <ul class="findings">
        {findings.map((finding) => (
          <li key={finding.id}>
            <button
              type="button"
              class={finding.id === current ? "plain now" : "plain"}
              aria-current={finding.id === current ? "true" : undefined}
              onClick={() => onOpen(finding.id)}
            >
              <strong>{finding.id}</strong> {finding.message}
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
