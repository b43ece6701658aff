// Contents of lines, word by word.

import type { Phase, Words } from "./documents";
import type { Moment } from "./documents";

const WORD_BYTES = 8;
const WORDS = 8;
const SHOWN_MAX = 4;

/** All versions of a line that a moment has. */
function versionsOf(moment: Moment, line: number): Words[] {
  const found: Words[] = [];
  const add = (seen: { line: number; words: Words }[]) => {
    for (const one of seen) if (one.line === line) found.push(one.words);
  };
  for (const phase of moment.timeline.phases as Phase[]) {
    if (phase.kind === "run") {
      add(phase.copies);
      add(phase.left);
    } else {
      if (phase.kind === "hardware_recovery") add(phase.writes);
      add(phase.lines);
    }
  }
  for (const final of moment.timeline.lines) {
    if (final.line !== line) continue;
    found.push(...final.expected);
    if (final.found) found.push(final.found);
  }
  return found;
}

export interface Columns {
  shown: number[];
  /** Words that differ and are not shown. */
  more: number;
}

/** The words that differ between versions of a line; wrong ones come first. */
export function columnsOf(moment: Moment, line: number, all: boolean): Columns {
  const every = [...Array(WORDS).keys()];
  if (all) return { shown: every, more: 0 };
  const versions = versionsOf(moment, line);
  const final = moment.timeline.lines.find((one) => one.line === line);
  const isWrong = (word: number) =>
    final?.found != null && !final.expected.some((expected) => expected[word] === final.found?.[word]);
  const differs = (word: number) =>
    new Set(versions.map((words) => words[word]).filter((value) => value != null)).size > 1;
  const wrong = every.filter(isWrong);
  const differing = [...wrong, ...every.filter((word) => differs(word) && !isWrong(word))];
  const shown = (differing.length ? differing : [0]).slice(0, SHOWN_MAX);
  return { shown: shown.sort((a, b) => a - b), more: Math.max(differing.length - shown.length, 0) };
}

export const offsetOf = (word: number) => `+0x${(word * WORD_BYTES).toString(16).padStart(2, "0")}`;

/** Cells of a row; a word that differs from `other` is marked. */
export function Cells({ words, shown, other }: { words: Words | null; shown: number[]; other?: Words | null }) {
  return (
    <>
      {shown.map((word) => {
        const value = words?.[word] ?? null;
        const differs = other != null && value !== null && other[word] !== value;
        return (
          <td key={word} class={differs ? "word differs" : "word"}>
            {value ?? "-"}
          </td>
        );
      })}
    </>
  );
}
