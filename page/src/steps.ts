// The steps of a run as lanes of a time line.

import type { Frame, RunRecord, Step } from "./documents";
import { hexadecimal } from "./server";

const LINE_BYTES = 64;

export interface Lane {
  name: string;
  /** Indices of its steps, in order. */
  steps: number[];
}

export interface OpenTransaction {
  lane: string;
  tx: number;
  from: number;
  to: number;
  state: string;
}

export interface Lanes {
  lanes: Lane[];
  /** The lane of each step. */
  laneOf: string[];
  /** The index of the step of each persist event; that of event n is at n. */
  events: number[];
  transactions: OpenTransaction[];
}

const OF_CACHES = new Set(["cache_store", "cache_arrival"]);
const OF_DESIGN = new Set(["design_step", "commit", "background"]);

/** The first byte of the line of a step. */
export function lineOf(step: Step): number | undefined {
  return step.address === undefined ? undefined : step.address - (step.address % LINE_BYTES);
}

function laneName(step: Step): string {
  if (step.what === "evict") return "evictions";
  if (OF_CACHES.has(step.what)) return "durable caches";
  if (OF_DESIGN.has(step.what)) return "design";
  if (step.what === "queue_accept") return `write queue ${step.controller}`;
  if (step.controller !== undefined) return `media ${step.controller}`;
  return `thread ${step.thread}`;
}

const ORDER = ["thread", "evictions", "durable caches", "design", "write queue", "media"];

function rank(name: string): number {
  const kind = ORDER.findIndex((start) => name.startsWith(start));
  const number = Number(name.split(" ").at(-1));
  return kind * 1e6 + (Number.isNaN(number) ? 0 : number);
}

export function lanesOf(record: RunRecord): Lanes {
  const laneOf = record.steps.map(laneName);
  const byName = new Map<string, number[]>();
  const events: number[] = [];
  const open = new Map<number, OpenTransaction>();
  const transactions: OpenTransaction[] = [];
  record.steps.forEach((step, index) => {
    const lane = laneOf[index] as string;
    const steps = byName.get(lane);
    if (steps) steps.push(index);
    else byName.set(lane, [index]);
    if (step.event !== undefined) events[step.event] = index;
    if (step.tx === undefined) return;
    if (step.what === "begin") {
      const begun = { lane, tx: step.tx, from: index, to: record.steps.length, state: "open" };
      open.set(step.tx, begun);
      transactions.push(begun);
    } else if (step.what === "acknowledged" || step.what === "aborted") {
      const ended = open.get(step.tx);
      if (ended) Object.assign(ended, { to: index, state: step.what });
    }
  });
  const lanes = [...byName].map(([name, steps]) => ({ name, steps }));
  lanes.sort((a, b) => rank(a.name) - rank(b.name));
  return { lanes, laneOf, events, transactions };
}

/** The last persist event at or before a step; the first one if there is none. */
export function eventBefore(lanes: Lanes, index: number): number {
  let low = 1;
  let high = lanes.events.length - 1;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((lanes.events[middle] as number) <= index) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The persist event of the first failure in an id such as e12:torn.1/r3. */
export function eventOf(id: string): number | undefined {
  const found = /^e(\d+)/.exec(id);
  return found ? Number(found[1]) : undefined;
}

export function frameText(frame: Frame | undefined): string {
  if (!frame) return "no place in the source is known";
  const place = frame.file === null ? null : `${frame.file}:${frame.line ?? "?"}`;
  if (place === null) return frame.function ?? "no place in the source is known";
  return frame.function === null ? place : `${place} in ${frame.function}`;
}

export const cycles = (count: number) => count.toLocaleString("en-US");

const WORDS: Record<string, string> = {
  other_fence: "fence without W",
  begin: "transaction begins",
  committing: "commit starts",
  acknowledged: "commit acknowledged",
  aborted: "transaction aborts",
  suspended: "transaction suspended",
  resumed: "transaction resumed",
  evict: "eviction",
};

export const nameOf = (what: string) => WORDS[what] ?? what.replaceAll("_", " ");

export function regionOf(record: RunRecord, address: number): string | null {
  const within = (base: number, size: number) => address >= base && address < base + size;
  if (record.data && within(record.data.base, record.data.size_bytes)) {
    return `data + ${hexadecimal(address - record.data.base)}`;
  }
  const region = record.regions.find((one) => within(one.base, one.size_bytes));
  return region ? `${region.name} + ${hexadecimal(address - region.base)}` : null;
}

/** One sentence about a step. */
export function stepText(step: Step): string {
  let text = nameOf(step.what);
  if (step.event !== undefined) text = `event ${step.event}: ${text}`;
  if (step.cause !== undefined) text += ` (${step.cause})`;
  if (step.size_bytes !== undefined) text += ` of ${step.size_bytes} bytes, value ${step.value},`;
  if (step.address !== undefined) text += ` at ${hexadecimal(step.address)}`;
  if (step.level !== undefined) text += ` from ${step.level}`;
  if (step.tx !== undefined) text += `, transaction ${step.tx}`;
  if (step.core !== undefined) text += `, core ${step.core}`;
  return `${text}, cycle ${cycles(step.cycle)}`;
}
