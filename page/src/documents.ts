// The documents of the server; python/durasim/schemas describes each field.

export interface Frame {
  function: string | null;
  file: string | null;
  line: number | null;
}

export interface Place {
  pc: number;
  frames: Frame[];
}

export interface Step {
  what: string;
  cycle: number;
  event?: number;
  core?: number;
  thread?: number;
  address?: number;
  size_bytes?: number;
  value?: string;
  tx?: number;
  level?: string;
  controller?: number;
  cause?: string;
  place?: number;
}

export interface RunRecord {
  design: string;
  workload: string;
  machine: string;
  domain: string;
  cores: number;
  controllers: number;
  events: number;
  cycles: number;
  data: { base: number; size_bytes: number } | null;
  regions: { name: string; base: number; size_bytes: number }[];
  debug_information: string | null;
  places: Place[];
  steps: Step[];
}

export interface Finding {
  id: string;
  oracle: string;
  message: string;
}

export interface ExploredRun {
  record: RunRecord;
  start: string;
  findings: Finding[];
  files: string[];
}

export type Words = (string | null)[];

export interface Copy {
  line: number;
  place: string;
  dirty: boolean;
  tag: number;
  survived: boolean;
  words: Words;
}

export interface LineContents {
  line: number;
  words: Words;
}

export interface RunPhase {
  kind: "run";
  program: "run" | "recovery" | "work";
  failure: { event: number; event_kind: string; cycle: number; how: string };
  copies: Copy[];
  left: LineContents[];
  traces: { line: number; place: string; offset: number }[];
  dirty_shutdown: boolean;
}

export interface HardwareRecovery {
  kind: "hardware_recovery";
  cut_at_write: number | null;
  writes_total: number;
  replayed: number;
  discarded: number;
  losses: string[];
  writes: { number: number; line: number; words: Words }[];
  lines: LineContents[];
}

export interface ProgramRecovery {
  kind: "program_recovery";
  lines: LineContents[];
}

export type Phase = RunPhase | HardwareRecovery | ProgramRecovery;

export interface FinalLine {
  line: number;
  data_offset: number | null;
  found: Words | null;
  expected: Words[];
}

export interface Transaction {
  tx: number;
  core: number;
  thread: number | null;
  operation: number | null;
  state: string;
}

export interface Moment {
  id: string;
  command: string;
  lines_chosen_because: string;
  timeline: {
    id: string;
    objections: { oracle: string; message: string }[];
    reported_loss: string | null;
    lines_in_question: number;
    transactions: Transaction[];
    phases: Phase[];
    lines: FinalLine[];
  };
  reasons: string[][];
  causes: string[];
}

export interface SourceText {
  name: string;
  lines: string[] | null;
  problem: string | null;
}
