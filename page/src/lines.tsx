// For each followed line: the copies that the levels hold when power fails, and why each is in the image or not.

import { Fragment } from "preact";
import { useState } from "preact/hooks";
import type { FinalLine, Moment, RunPhase } from "./documents";
import { hexadecimal } from "./server";
import { Cells, columnsOf, offsetOf } from "./words";

const PROGRAMS = { run: "the run", recovery: "the program's recovery", work: "further work" };

export function Lines({ moment, onFollow }: { moment: Moment; onFollow: (lines: number[]) => void }) {
  const [all, setAll] = useState(false);
  const { timeline } = moment;
  const lines = timeline.lines.map((line) => line.line);
  const because = moment.lines_chosen_because;
  const left = because === "the request names them" ? 0 : timeline.lines_in_question - lines.length;
  return (
    <section class="panel" id="lines">
      <h2>Lines when power fails</h2>
      <p class="faint">
        Lines shown: {lines.length}; reason: {because}
        {left > 0 ? `; ${left} more are not shown` : ""}.{" "}
        <label>
          <input type="checkbox" checked={all} onChange={() => setAll(!all)} /> all words
        </label>
      </p>
      {timeline.lines.map((line) => (
        <LineTables
          key={line.line}
          moment={moment}
          line={line}
          all={all}
          onDrop={() => onFollow(lines.filter((one) => one !== line.line))}
        />
      ))}
    </section>
  );
}

function LineTables(props: { moment: Moment; line: FinalLine; all: boolean; onDrop: () => void }) {
  const { moment, line, all, onDrop } = props;
  const columns = columnsOf(moment, line.line, all);
  const where = line.data_offset === null ? "outside of declared data" : `data + ${hexadecimal(line.data_offset)}`;
  return (
    <article class="line" data-line={line.line}>
      <h3>
        line {hexadecimal(line.line)} <span class="faint">({where})</span>
        <button type="button" title="stop following this line" onClick={onDrop}>
          drop
        </button>
      </h3>
      {moment.timeline.phases.map((phase, index) =>
        phase.kind === "run" ? (
          <Copies
            key={index}
            phase={phase}
            reasons={moment.reasons[index] ?? []}
            line={line.line}
            shown={columns.shown}
          />
        ) : null,
      )}
      {columns.more > 0 && <p class="faint">{columns.more} more words differ.</p>}
    </article>
  );
}

function Copies(props: { phase: RunPhase; reasons: string[]; line: number; shown: number[] }) {
  const { phase, reasons, line, shown } = props;
  const image = phase.left.find((one) => one.line === line)?.words ?? null;
  const { event, how } = phase.failure;
  const places = [...new Set(phase.traces.filter((trace) => trace.line === line).map((trace) => trace.place))];
  return (
    <div class="scroll">
      <table class="copies">
        <caption>
          {PROGRAMS[phase.program]}: after event {event}, {how}
        </caption>
        <thead>
          <tr>
            <th>level</th>
            {shown.map((word) => (
              <th key={word}>{offsetOf(word)}</th>
            ))}
            <th>in the image</th>
          </tr>
        </thead>
        <tbody>
          {phase.copies.map((copy, index) =>
            copy.line === line ? (
              <Fragment key={index}>
                <tr class={copy.survived ? "copy kept" : copy.dirty ? "copy lost" : "copy"}>
                  <th>
                    {copy.place}
                    {copy.dirty ? ", dirty" : ""}
                    {copy.tag ? `, tag ${copy.tag}` : ""}
                  </th>
                  <Cells words={copy.words} shown={shown} other={image} />
                  <td>{copy.survived ? "yes" : "no"}</td>
                </tr>
                <tr class={copy.survived ? "kept" : copy.dirty ? "lost" : ""}>
                  <td class="reason" colSpan={shown.length + 2}>
                    {reasons[index]}
                  </td>
                </tr>
              </Fragment>
            ) : null,
          )}
          <tr class="image">
            <th>the image</th>
            <Cells words={image} shown={shown} />
            <td />
          </tr>
          {phase.dirty_shutdown && (
            <tr>
              <td class="reason" colSpan={shown.length + 2}>
                the energy of the crash flush ended early
              </td>
            </tr>
          )}
        </tbody>
      </table>
      {places.map((place) => (
        <p key={place}>{place} refers to this line.</p>
      ))}
    </div>
  );
}
