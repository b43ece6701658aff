// The page: it reads the run once, and a moment for each place of the power failure.

import { render } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { ExploredRun, Moment } from "./documents";
import { Lines } from "./lines";
import { Recovery } from "./recovery";
import { openSession, readMoment, readRun } from "./server";
import { StepPanel } from "./source";
import { cycles, eventOf, lanesOf } from "./steps";
import { Timeline } from "./timeline";
import { Findings, VerdictPanel } from "./verdict";

/** While the power failure is dragged, the places in between are not simulated. */
const PAUSE_MS = 150;

/** The moment of an id and of the lines that are followed, as soon as it is simulated. */
function useMoment(id: string, lines: number[]): [Moment | null, string | null, boolean] {
  const [moment, setMoment] = useState<Moment | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [waits, setWaits] = useState(true);
  useEffect(() => {
    const ended = new AbortController();
    setWaits(true);
    const done = (found: Moment | null, sentence: string | null) => {
      if (ended.signal.aborted) return;
      if (found) setMoment(found);
      setProblem(sentence);
      setWaits(false);
    };
    const timer = setTimeout(() => {
      readMoment(id, lines, ended.signal).then(
        (found) => done(found, null),
        (error: Error) => done(null, error.message),
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      ended.abort();
    };
  }, [id, lines]);
  return [moment, problem, waits];
}

function Page({ run }: { run: ExploredRun }) {
  const { record } = run;
  const lanes = useMemo(() => lanesOf(record), [record]);
  const [id, setId] = useState(run.start);
  const [named, setNamed] = useState<number[]>([]);
  const [selected, setSelected] = useState<number | null>(null);
  const [moment, problem, waits] = useMoment(id, named);
  const followed = named.length ? named : (moment?.timeline.lines.map((line) => line.line) ?? []);
  const event = Math.min(eventOf(id) ?? 1, record.events);
  return (
    <>
      <header>
        <h1>
          {record.workload} on {record.machine}, {record.design}
        </h1>
        <p>
          domain {record.domain}, {record.cores} {record.cores === 1 ? "core" : "cores"}, {cycles(record.events)} persist
          events, {cycles(record.cycles)} cycles
        </p>
        {record.debug_information !== null && <p class="problem">{record.debug_information}.</p>}
        <IdForm id={id} waits={waits} onOpen={setId} />
        {problem !== null && (
          <p class="problem" role="alert" id="problem">
            {problem}
          </p>
        )}
      </header>
      <Timeline
        record={record}
        lanes={lanes}
        findings={run.findings}
        event={event}
        followed={followed}
        selected={selected}
        onCut={(place) => setId(`e${place}`)}
        onSelect={setSelected}
      />
      <main class={waits ? "columns waits" : "columns"} aria-busy={waits}>
        <div>
          {moment && <VerdictPanel moment={moment} />}
          {moment && <Lines moment={moment} onFollow={setNamed} />}
          {moment && <Recovery moment={moment} />}
        </div>
        <div class="aside">
          <Findings findings={run.findings} current={id} onOpen={setId} />
          {named.length > 0 && (
            <p>
              <button type="button" id="choose" onClick={() => setNamed([])}>
                follow the lines that decide the verdict
              </button>
            </p>
          )}
          <StepPanel run={run} selected={selected} followed={followed} onFollow={setNamed} onSelect={setSelected} />
        </div>
      </main>
    </>
  );
}

function IdForm({ id, waits, onOpen }: { id: string; waits: boolean; onOpen: (id: string) => void }) {
  const [text, setText] = useState(id);
  useEffect(() => setText(id), [id]);
  return (
    <form
      onSubmit={(submitted) => {
        submitted.preventDefault();
        onOpen(text.trim());
      }}
    >
      <label>
        power failure{" "}
        <input
          id="id"
          value={text}
          spellcheck={false}
          title="such as e12, e12:torn.1, e12/r3"
          onInput={(typed) => setText(typed.currentTarget.value)}
        />
      </label>
      <button type="submit">open</button>
      <span id="state" role="status">
        {waits ? "simulating" : "ready"}
      </span>
    </form>
  );
}

async function start(root: HTMLElement) {
  try {
    await openSession();
    const run = await readRun();
    root.replaceChildren();
    render(<Page run={run} />, root);
    document.getElementById("lanes")?.focus();
  } catch (error) {
    root.replaceChildren();
    render(<p class="problem" role="alert" id="problem">{(error as Error).message}</p>, root);
  }
}

const root = document.getElementById("page");
if (root) void start(root);
