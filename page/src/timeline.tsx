// The time line: lanes with the steps of the run, an overview of all of it, and the place where power fails.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Finding, RunRecord, Step } from "./documents";
import { type Lanes, cycles, eventBefore, eventOf, lineOf, nameOf, stepText } from "./steps";

const LABEL_PX = 112;
const LANE_PX = 34;
const AXIS_PX = 22;
const OVERVIEW_PX = 44;
const SHOWN_MIN = 20;
const SHOWN_MAX = 1500;
const PAGE_EVENTS = 10;

export interface View {
  from: number;
  count: number;
  byCycle: boolean;
}

interface Props {
  record: RunRecord;
  lanes: Lanes;
  findings: Finding[];
  event: number;
  followed: number[];
  selected: number | null;
  onCut: (event: number) => void;
  onSelect: (index: number) => void;
}

/** Width of an element in pixels, which follows the window. */
function useWidth(): [preact.RefObject<HTMLDivElement | null>, number] {
  const element = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(900);
  useEffect(() => {
    const observer = new ResizeObserver((entries) => {
      for (const entry of entries) setWidth(entry.contentRect.width);
    });
    if (element.current) observer.observe(element.current);
    return () => observer.disconnect();
  }, []);
  return [element, width];
}

export function Timeline(props: Props) {
  const { record, lanes, event } = props;
  const [frame, width] = useWidth();
  const total = record.steps.length;
  const [view, setView] = useState<View>({ from: 0, count: Math.min(total, 120), byCycle: false });
  const cutAt = lanes.events[event] ?? 0;
  const clamp = (from: number, count: number) => Math.max(0, Math.min(total - count, from));

  // The place of the power failure stays visible.
  useEffect(() => {
    if (cutAt < view.from + 2 || cutAt > view.from + view.count - 3) {
      setView((old) => ({ ...old, from: clamp(Math.round(cutAt - old.count / 2), old.count) }));
    }
  }, [cutAt]);

  const zoom = (factor: number, around = cutAt) => {
    const count = Math.min(total, Math.max(SHOWN_MIN, Math.min(SHOWN_MAX, Math.round(view.count * factor))));
    const share = Math.max(0, Math.min(1, (around - view.from) / view.count));
    setView({ ...view, count, from: clamp(Math.round(around - share * count), count) });
  };
  const goTo = (wanted: number) => props.onCut(Math.max(1, Math.min(record.events, wanted)));
  const stepTo = (direction: number) => {
    const index = props.selected === null ? cutAt : props.selected + direction;
    const wanted = Math.max(0, Math.min(total - 1, index));
    props.onSelect(wanted);
    if (wanted < view.from || wanted >= view.from + view.count) {
      setView({ ...view, from: clamp(Math.round(wanted - view.count / 2), view.count) });
    }
  };
  const keys: Record<string, () => void> = {
    ArrowLeft: () => goTo(event - 1),
    ArrowRight: () => goTo(event + 1),
    PageUp: () => goTo(event - PAGE_EVENTS),
    PageDown: () => goTo(event + PAGE_EVENTS),
    Home: () => goTo(1),
    End: () => goTo(record.events),
    ArrowUp: () => stepTo(-1),
    ArrowDown: () => stepTo(1),
    "+": () => zoom(0.5),
    "-": () => zoom(2),
  };
  const pressed = (key: KeyboardEvent) => {
    const act = key.ctrlKey || key.metaKey || key.altKey ? undefined : keys[key.key];
    if (!act) return;
    key.preventDefault();
    act();
  };

  return (
    <section class="timeline" aria-label="time line">
      <div class="bar">
        <button type="button" title="previous persist event (left arrow)" onClick={keys.ArrowLeft}>
          &larr;
        </button>
        <button type="button" title="next persist event (right arrow)" onClick={keys.ArrowRight}>
          &rarr;
        </button>
        <button type="button" title="show fewer steps (+)" onClick={keys["+"]}>
          zoom in
        </button>
        <button type="button" title="show more steps (-)" onClick={keys["-"]}>
          zoom out
        </button>
        <label>
          <input
            type="checkbox"
            checked={view.byCycle}
            onChange={() => setView({ ...view, byCycle: !view.byCycle })}
          />
          space by cycles
        </label>
        <Legend />
      </div>
      <div
        ref={frame}
        class="lanes"
        id="lanes"
        tabIndex={0}
        role="slider"
        aria-label="power fails after persist event"
        aria-valuemin={1}
        aria-valuemax={record.events}
        aria-valuenow={event}
        aria-valuetext={`event ${event} of ${record.events}`}
        onKeyDown={pressed}
      >
        <Overview {...props} view={view} width={width} />
        <LaneDrawing {...props} view={view} width={width} onZoom={zoom} />
      </div>
      <p class="hint">
        Click or drag to place the power failure; click a mark for its step. Keys: left and right for persist events, page up
        and page down for ten, home, end, up and down for steps, + and -. The shaded part ends at the next persist event: what
        is acknowledged in it has to survive too.
      </p>
    </section>
  );
}

function Overview({ record, lanes, findings, event, view, width, onCut }: Props & { view: View; width: number }) {
  const total = record.steps.length;
  const drawn = Math.max(width - LABEL_PX, 50);
  const at = (index: number) => LABEL_PX + (index / total) * drawn;
  const bins = Math.max(1, Math.min(200, total));
  const counts = new Array<number>(bins).fill(0);
  for (let index = 0; index < total; index++) {
    const bin = Math.floor((index / total) * bins);
    if (record.steps[index]?.event !== undefined) counts[bin] = (counts[bin] as number) + 1;
  }
  const most = Math.max(1, ...counts);
  const pressed = (pointer: PointerEvent) => {
    const box = (pointer.currentTarget as Element).getBoundingClientRect();
    const share = (pointer.clientX - box.left - LABEL_PX) / drawn;
    onCut(eventBefore(lanes, Math.round(share * total)));
  };
  return (
    <svg class="overview" width={width} height={OVERVIEW_PX} onPointerDown={pressed} aria-hidden="true">
      <text x={0} y={17}>whole run</text>
      <text x={0} y={32} class="faint">{cycles(record.events)} events</text>
      {counts.map((count, bin) => {
        const height = (count / most) * (OVERVIEW_PX - 14);
        return (
          <rect
            class="density"
            key={bin}
            x={LABEL_PX + (bin / bins) * drawn}
            width={Math.max(drawn / bins - 0.5, 0.5)}
            y={OVERVIEW_PX - 6 - height}
            height={height}
          />
        );
      })}
      <rect class="window" x={at(view.from)} width={(view.count / total) * drawn} y={1} height={OVERVIEW_PX - 4} />
      {findings.map((finding) => {
        const x = at(lanes.events[eventOf(finding.id) ?? 1] ?? 0);
        return <path class="finding" key={finding.id} d={`M${x - 4} 0 h8 l-4 7 z`} />;
      })}
      <line class="cut" x1={at(lanes.events[event] ?? 0)} x2={at(lanes.events[event] ?? 0)} y1={0} y2={OVERVIEW_PX} />
    </svg>
  );
}

/** Positions of steps: one after the other, or by cycle. */
function positions(record: RunRecord, view: View, width: number): (index: number) => number {
  const drawn = Math.max(width - LABEL_PX - 8, 50);
  if (!view.byCycle) return (index) => LABEL_PX + ((index - view.from + 0.5) / view.count) * drawn;
  const shown = record.steps.slice(view.from, view.from + view.count).map((step) => step.cycle);
  const first = shown.reduce((a, b) => Math.min(a, b), Infinity);
  const last = shown.reduce((a, b) => Math.max(a, b), 0);
  const span = Math.max(last - first, 1);
  return (index) => {
    const step = record.steps[Math.max(0, Math.min(record.steps.length - 1, Math.round(index)))] as Step;
    return LABEL_PX + 4 + ((step.cycle - first) / span) * (drawn - 8);
  };
}

function LaneDrawing(
  props: Props & { view: View; width: number; onZoom: (factor: number, around: number) => void },
) {
  const { record, lanes, view, width, event } = props;
  const dragging = useRef(false);
  const x = positions(record, view, width);
  const end = Math.min(record.steps.length, view.from + view.count);
  const height = AXIS_PX + lanes.lanes.length * LANE_PX;
  const nearest = (pointer: PointerEvent | WheelEvent) => {
    const box = (pointer.currentTarget as Element).getBoundingClientRect();
    const wanted = pointer.clientX - box.left;
    if (!view.byCycle) {
      const drawn = Math.max(width - LABEL_PX - 8, 50);
      return view.from + Math.floor(((wanted - LABEL_PX) / drawn) * view.count);
    }
    let best = view.from;
    for (let index = view.from; index < end; index++) if (x(index) <= wanted) best = index;
    return best;
  };
  const place = (pointer: PointerEvent) => props.onCut(eventBefore(lanes, nearest(pointer)));
  const wheel = (turned: WheelEvent) => {
    if (!turned.ctrlKey) return;
    turned.preventDefault();
    props.onZoom(turned.deltaY > 0 ? 1.25 : 0.8, nearest(turned));
  };
  const cutAt = lanes.events[event] ?? 0;
  const next = lanes.events[event + 1] ?? record.steps.length;
  const cutX = view.byCycle ? x(cutAt) + 1 : x(cutAt + 0.5);
  const nextX = Math.min(view.byCycle ? x(next) - 1 : x(next - 0.5), width - 8);
  return (
    <svg
      class="drawing"
      width={width}
      height={height}
      onWheel={wheel}
      onPointerDown={(pointer) => {
        const mark = (pointer.target as Element).closest("[data-step]");
        if (mark) {
          const index = Number(mark.getAttribute("data-step"));
          const number = record.steps[index]?.event;
          props.onSelect(index);
          if (number !== undefined) props.onCut(number);
          return;
        }
        dragging.current = true;
        (pointer.currentTarget as Element).setPointerCapture(pointer.pointerId);
        place(pointer);
      }}
      onPointerMove={(pointer) => dragging.current && place(pointer)}
      onPointerUp={() => {
        dragging.current = false;
      }}
    >
      <Axis record={record} view={view} x={x} width={width} cutX={cutX} />
      {cutX <= width && nextX > cutX && (
        <rect class="until-next" x={Math.max(cutX, LABEL_PX)} width={nextX - Math.max(cutX, LABEL_PX)} y={AXIS_PX} height={height - AXIS_PX} />
      )}
      {lanes.lanes.map((lane, row) => (
        <g key={lane.name}>
          <line class="lane" x1={LABEL_PX} x2={width} y1={center(row)} y2={center(row)} />
          <text x={0} y={center(row) + 4}>{lane.name}</text>
        </g>
      ))}
      <Transactions lanes={lanes} view={view} x={x} width={width} end={end} />
      <Marks {...props} x={x} end={end} />
      <line class="cut" x1={cutX} x2={cutX} y1={AXIS_PX - 6} y2={height} />
      {cutX >= LABEL_PX && cutX <= width && (
        <text class="cut-label" x={cutX > width - 60 ? cutX - 4 : cutX + 3} y={11} text-anchor={cutX > width - 60 ? "end" : "start"}>
          e{event}
        </text>
      )}
    </svg>
  );
}

const center = (row: number) => AXIS_PX + row * LANE_PX + LANE_PX / 2;

interface Drawn {
  view: View;
  x: (index: number) => number;
  width: number;
}

function Axis({ record, view, x, width, cutX }: Drawn & { record: RunRecord; cutX: number }) {
  const ticks: preact.JSX.Element[] = [];
  const wanted = Math.max(1, Math.floor((width - LABEL_PX) / 130));
  let last = 0;
  for (let tick = 0; tick < wanted; tick++) {
    const index = Math.min(record.steps.length - 1, Math.floor(view.from + ((tick + 0.5) * view.count) / wanted));
    const at = x(index);
    // Spaced by cycles, steps may be close to each other.
    if (at - last < 90) continue;
    // The number of the event is there.
    if (Math.abs(at - cutX) < 75) continue;
    last = at;
    ticks.push(
      <text key={tick} class="faint" x={at} y={11} text-anchor="middle">
        {cycles((record.steps[index] as Step).cycle)}
      </text>,
    );
  }
  return (
    <g>
      <text class="faint" x={0} y={11}>cycle</text>
      {ticks}
    </g>
  );
}

function Transactions({ lanes, view, x, width, end }: Drawn & { lanes: Lanes; end: number }) {
  const row = new Map(lanes.lanes.map((lane, index) => [lane.name, index]));
  const shown = lanes.transactions.filter((one) => one.from < end && one.to >= view.from);
  return (
    <g>
      {shown.map((one) => {
        const left = one.from < view.from ? LABEL_PX : x(one.from);
        const right = one.to >= end ? width - 4 : x(one.to);
        return (
          <rect
            class={`transaction ${one.state}`}
            key={one.tx}
            x={left}
            width={Math.max(right - left, 1)}
            y={center(row.get(one.lane) ?? 0) - 13}
            height={26}
            rx={3}
          >
            <title>{`transaction ${one.tx}: ${one.state}`}</title>
          </rect>
        );
      })}
    </g>
  );
}

function Marks({ record, lanes, view, x, end, followed, selected }: Props & { view: View; x: (index: number) => number; end: number }) {
  const lines = new Set(followed);
  const marks: preact.JSX.Element[] = [];
  lanes.lanes.forEach((lane, row) => {
    for (const index of lane.steps) {
      if (index < view.from || index >= end) continue;
      const step = record.steps[index] as Step;
      const line = lineOf(step);
      const kind = line === undefined || lines.size === 0 || lines.has(line) ? "" : " of-another-line";
      marks.push(
        <g
          key={index}
          class={`mark ${step.what}${kind}${index === selected ? " selected" : ""}`}
          data-step={index}
          transform={`translate(${x(index).toFixed(1)} ${center(row)})`}
        >
          <Shape what={step.what} />
          <title>{stepText(step)}</title>
        </g>,
      );
    }
  });
  return <g>{marks}</g>;
}

function Shape({ what }: { what: string }) {
  switch (what) {
    case "store":
      return <rect x={-2} y={-9} width={4} height={18} />;
    case "clean":
      return <path d="M-5 -6 h10 l-5 11 z" />;
    case "fence":
    case "other_fence":
      return <path d="M-2.5 -12 v24 M2.5 -12 v24" />;
    case "evict":
      return <path d="M0 -7 l6 7 l-6 7 l-6 -7 z" />;
    case "queue_accept":
    case "cache_store":
    case "cache_arrival":
      return <rect x={-5} y={-5} width={10} height={10} />;
    case "media_write":
    case "media_write_start":
      return <circle r={5.5} />;
    case "begin":
      return <path d="M4 -11 h-6 v22 h6" />;
    case "acknowledged":
    case "aborted":
      return <path d="M-4 -11 h6 v22 h-6" />;
    default:
      return <circle r={3} />;
  }
}

const LEGEND = ["store", "clean", "fence", "evict", "queue_accept", "media_write"];

function Legend() {
  return (
    <span class="legend">
      {LEGEND.map((what) => (
        <span key={what}>
          <svg width={18} height={26} aria-hidden="true">
            <g class={`mark ${what}`} transform="translate(9 13)">
              <Shape what={what} />
            </g>
          </svg>
          {nameOf(what)}
        </span>
      ))}
    </span>
  );
}
