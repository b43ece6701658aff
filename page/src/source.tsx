// The selected step, and the source of its instruction beside it.

import { useEffect, useRef, useState } from "preact/hooks";
import type { ExploredRun, Frame, SourceText } from "./documents";
import { hexadecimal, readSource } from "./server";
import { frameText, lineOf, regionOf, stepText } from "./steps";

const LINES_AROUND = 60;

interface Props {
  run: ExploredRun;
  selected: number | null;
  followed: number[];
  onFollow: (lines: number[]) => void;
  onSelect: (index: number) => void;
}

export function StepPanel({ run, selected, followed, onFollow, onSelect }: Props) {
  const { record } = run;
  const step = selected === null ? undefined : record.steps[selected];
  if (!step || selected === null) {
    return (
      <section class="panel" id="step">
        <h2>Step</h2>
        <p>Click a mark on the time line to see its step and its source.</p>
      </section>
    );
  }
  const line = lineOf(step);
  const region = step.address === undefined ? null : regionOf(record, step.address);
  const place = step.place === undefined ? undefined : record.places[step.place];
  const isFollowed = line !== undefined && followed.includes(line);
  const neighbour = (direction: number) => {
    for (let index = selected + direction; index >= 0 && index < record.steps.length; index += direction) {
      const other = record.steps[index];
      if (other && (line === undefined ? other.thread === step.thread : lineOf(other) === line)) return index;
    }
    return selected;
  };
  const same = line === undefined ? "of this thread" : "of this line";
  return (
    <section class="panel" id="step">
      <h2>Step</h2>
      <p id="step-text">{stepText(step)}.</p>
      {region && <p>{region}</p>}
      <div class="bar">
        <button type="button" onClick={() => onSelect(neighbour(-1))}>previous {same}</button>
        <button type="button" onClick={() => onSelect(neighbour(1))}>next {same}</button>
        {line !== undefined && !isFollowed && (
          <button type="button" id="follow" onClick={() => onFollow([...followed, line])}>
            follow line {hexadecimal(line)}
          </button>
        )}
      </div>
      {place ? (
        <Source run={run} frames={place.frames} pc={place.pc} />
      ) : (
        <p class="faint">This step is of no instruction: a cache, a controller or the design makes it.</p>
      )}
    </section>
  );
}

function Source({ run, frames, pc }: { run: ExploredRun; frames: Frame[]; pc: number }) {
  const [chosen, setChosen] = useState(0);
  useEffect(() => setChosen(0), [frames]);
  const frame = frames[Math.min(chosen, frames.length - 1)];
  const missing = run.record.debug_information;
  return (
    <div id="source">
      <h2>Source</h2>
      <ul class="frames">
        {frames.map((one, index) => (
          <li key={index}>
            <button type="button" class={index === chosen ? "plain now" : "plain"} onClick={() => setChosen(index)}>
              {index ? "inlined into " : ""}
              {frameText(one)}
            </button>
          </li>
        ))}
      </ul>
      <p class="faint">instruction {hexadecimal(pc)}</p>
      {frame?.file != null ? (
        <SourceLines number={run.files.indexOf(frame.file)} line={frame.line} />
      ) : (
        <p class="problem">{missing ?? "The debug information names no line of this instruction."}</p>
      )}
    </div>
  );
}

function SourceLines({ number, line }: { number: number; line: number | null }) {
  const [text, setText] = useState<SourceText | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const current = useRef<HTMLLIElement>(null);
  useEffect(() => {
    let isCurrent = true;
    readSource(number).then(
      (found) => isCurrent && (setText(found), setProblem(found.problem)),
      (error: Error) => isCurrent && setProblem(error.message),
    );
    return () => {
      isCurrent = false;
    };
  }, [number]);
  useEffect(() => {
    const shown = current.current;
    const list = shown?.parentElement;
    if (shown && list) list.scrollTop = shown.offsetTop - list.offsetTop - list.clientHeight / 2;
  }, [text, line]);
  if (problem !== null) return <p class="problem">The source is not shown: {problem}.</p>;
  if (text?.lines == null) return <p class="faint">reading the source</p>;
  const middle = line ?? 1;
  const first = Math.max(1, middle - LINES_AROUND);
  const last = Math.min(text.lines.length, middle + LINES_AROUND);
  return (
    <ol class="code" start={first} tabIndex={0} aria-label={text.name}>
      {text.lines.slice(first - 1, last).map((content, index) => {
        const isCurrent = first + index === line;
        return (
          <li key={first + index} ref={isCurrent ? current : undefined} class={isCurrent ? "now" : ""}>
            <span class="number">{first + index}</span>
            {content || " "}
          </li>
        );
      })}
    </ol>
  );
}
