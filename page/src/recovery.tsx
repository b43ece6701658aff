// Recovery, step by step: each write of the hardware, each program, and what is found in the end.

import { useEffect, useState } from "preact/hooks";
import type { Moment, Words } from "./documents";
import { hexadecimal } from "./server";
import { Cells, columnsOf, offsetOf } from "./words";

interface RecoveryStep {
  text: string;
  /** Contents of the lines after it. */
  contents: Map<number, Words>;
}

/** The steps from the power failure to the end. */
export function stepsOf(moment: Moment): RecoveryStep[] {
  const steps: RecoveryStep[] = [];
  let contents = new Map<number, Words>();
  const add = (text: string, seen: { line: number; words: Words }[]) => {
    contents = new Map(contents);
    for (const { line, words } of seen) {
      const before = contents.get(line) ?? [];
      contents.set(line, words.map((word, index) => overlaid(word, before[index] ?? null)));
    }
    steps.push({ text, contents });
  };
  for (const phase of moment.timeline.phases) {
    if (phase.kind === "run") {
      add(`power fails after event ${phase.failure.event}; this is left`, phase.left);
    } else if (phase.kind === "program_recovery") {
      add("the program's recovery has run", phase.lines);
    } else {
      for (const write of phase.writes) {
        add(`the hardware's recovery makes write ${write.number}, to line ${hexadecimal(write.line)}`, [write]);
      }
      const done = `${phase.replayed} transactions replayed, ${phase.discarded} discarded`;
      const ends =
        phase.cut_at_write === null ? `ends: ${done}` : `is interrupted at write ${phase.cut_at_write}`;
      const losses = phase.losses.map((loss) => `; it reports data loss: ${loss}`).join("");
      add(`the hardware's recovery (${phase.writes_total} writes) ${ends}${losses}`, phase.lines);
    }
  }
  const found = moment.timeline.lines.flatMap(({ line, found: words }) => (words ? [{ line, words }] : []));
  add(found.length ? "the check has run; this is found" : "no recovery has ended", found);
  return steps;
}

/** A word with unknown bytes (`..`) over the word that was there. */
function overlaid(word: string | null, before: string | null): string | null {
  if (word === null || before === null || !word.includes(".")) return word ?? before;
  return [...word].map((digit, index) => (digit === "." ? (before[index] ?? ".") : digit)).join("");
}

export function Recovery({ moment }: { moment: Moment }) {
  const steps = stepsOf(moment);
  const [at, setAt] = useState(0);
  useEffect(() => setAt(0), [moment]);
  const now = Math.min(at, steps.length - 1);
  const step = steps[now] as RecoveryStep;
  const before = now > 0 ? steps[now - 1]?.contents : undefined;
  return (
    <section class="panel" id="recovery">
      <h2>Recovery</h2>
      <div class="bar">
        <button type="button" disabled={now === 0} onClick={() => setAt(now - 1)}>
          previous step
        </button>
        <button type="button" disabled={now === steps.length - 1} onClick={() => setAt(now + 1)}>
          next step
        </button>
        <span id="recovery-place">
          step {now + 1} of {steps.length}
        </span>
      </div>
      <ol class="steps">
        {steps.map((one, index) => (
          <li key={index} class={index === now ? "now" : ""} aria-current={index === now ? "step" : undefined}>
            <button type="button" class="plain" onClick={() => setAt(index)}>
              {one.text}
            </button>
          </li>
        ))}
      </ol>
      {moment.timeline.lines.map((line) => {
        const { shown } = columnsOf(moment, line.line, false);
        const isLast = now === steps.length - 1;
        return (
          <div class="scroll" key={line.line}>
            <table class="contents">
              <thead>
                <tr>
                  <th>line {hexadecimal(line.line)}</th>
                  {shown.map((word) => (
                    <th key={word}>{offsetOf(word)}</th>
                  ))}
                </tr>
              </thead>
              <tbody>
                <tr>
                  <th>{isLast ? "found" : "after this step"}</th>
                  <Cells
                    words={step.contents.get(line.line) ?? null}
                    shown={shown}
                    other={isLast ? null : (before?.get(line.line) ?? null)}
                  />
                </tr>
                {line.expected.map((expected, index) => (
                  <tr key={index}>
                    <th>{index ? "or" : "expected"}</th>
                    <Cells words={expected} shown={shown} other={isLast ? line.found : null} />
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        );
      })}
    </section>
  );
}
