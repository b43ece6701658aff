"use strict";

// The page of `--monitor`. Names and sentences come from files of others: they are set as text, never as markup.

const CELLS_MAX = 5000;
const STATES = new Map([
  ["w", "waiting"],
  ["r", "in progress"],
  ["s", "simulated"],
  ["u", "from the store"],
  ["v", "with violations"],
  ["f", "failed"],
]);
const byId = (id) => document.getElementById(id);
const names = [];
let study = -1;

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

function number(value) {
  if (typeof value !== "number") return value === null || value === undefined ? "-" : String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  return Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en-US") : String(Number(value.toPrecision(4)));
}

function duration(seconds) {
  if (seconds === null) return "unknown";
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const readable = (name) => name.replaceAll("_", " ");

function showProblem(sentence) {
  byId("problem").textContent = sentence;
  byId("problem").hidden = false;
}

function showNumbers(state) {
  const counts = state.counts;
  const shown = [
    [`${state.unit} done`, state.total === null ? number(state.done) : `${number(state.done)} of ${number(state.total)}`],
    ["time so far", duration(state.elapsed_s)],
    ["time left", state.ended ? "-" : duration(state.left_s)],
    ["simulated", number(counts.simulated ?? 0)],
    ["from the store", number(counts.reused ?? 0)],
    ["failed", number(counts.failed ?? 0)],
  ];
  if (state.mips !== null) shown.push(["MIPS", number(state.mips)]);
  for (const [name, value] of Object.entries(state.sums)) shown.push([readable(name), number(value)]);
  byId("numbers").replaceChildren(
    ...shown.map(([name, value]) => {
      const pair = element("div");
      pair.append(element("dt", name), element("dd", value));
      return pair;
    }),
  );
}

function showGrid(states) {
  const grid = byId("grid");
  const isCrowd = states.length > CELLS_MAX;
  byId("points").hidden = states.length === 0;
  byId("crowd").hidden = !isCrowd;
  if (isCrowd) {
    const counts = [...STATES].map(([letter, name]) => `${number(states.split(letter).length - 1)} ${name}`);
    byId("crowd").textContent = counts.join(", ");
    grid.replaceChildren();
    return;
  }
  while (grid.childElementCount > states.length) grid.lastElementChild.remove();
  while (grid.childElementCount < states.length) grid.append(element("span"));
  for (let place = 0; place < states.length; place += 1) {
    const cell = grid.children[place];
    const className = `point ${states[place]}`;
    const title = `${names[place] ?? ""}: ${STATES.get(states[place])}`;
    if (cell.className !== className) cell.className = className;
    if (cell.title !== title) cell.title = title;
  }
}

function showLegend() {
  byId("legend").replaceChildren(
    ...[...STATES].map(([letter, name]) => {
      const key = element("span");
      key.append(element("i", undefined, `point ${letter}`), element("span", name));
      return key;
    }),
  );
}

function listItems(list, rows, empty) {
  list.replaceChildren(...(rows.length ? rows : [element("li", empty, "faint")]));
}

function showFailures(state) {
  const rows = state.failures.map((failure) => {
    const violations = failure.counters.violations;
    const reason = failure.problem ?? `${number(violations)} violation${violations === 1 ? "" : "s"}`;
    const item = element("li");
    item.append(element("span", failure.name), element("span", `: ${reason}`, "wrong"));
    item.append(element("code", failure.command, "command"));
    return item;
  });
  listItems(byId("failures"), rows, "none");
}

function showRunning(state) {
  const rows = state.running.map((point) => element("li", `${point.name}, for ${duration(point.seconds)}`));
  const more = state.running_points - state.running.length;
  if (more > 0) rows.push(element("li", `and ${number(more)} more`, "faint"));
  listItems(byId("running"), rows, state.ended ? "none" : state.doing);
}

function showRecent(state) {
  const columns = [...new Set(state.recent.flatMap((point) => Object.keys(point.counters)))];
  const head = element("tr");
  for (const name of ["point", "state", "seconds", ...columns]) head.append(element("th", readable(name)));
  const body = element("tbody");
  for (const point of state.recent) {
    const row = element("tr");
    row.append(element("td", point.name), element("td", point.state, point.state === "failed" ? "wrong" : ""));
    for (const value of [point.seconds, ...columns.map((name) => point.counters[name])]) {
      row.append(element("td", number(value), "number"));
    }
    body.append(row);
  }
  const top = element("thead");
  top.append(head);
  byId("recent").replaceChildren(top, body);
}

function show(state) {
  if (state.study !== study) names.length = 0;
  study = state.study;
  names.splice(state.first_name, names.length, ...state.names);
  const title = state.name ? `${state.command}: ${state.name}` : state.command;
  byId("title").textContent = title;
  document.title = state.total ? `${Math.floor((100 * state.done) / state.total)} % ${title}` : title;
  byId("state").textContent = state.ended ? `the command has ${state.ended === "interrupted" ? "been " : ""}${state.ended}` : state.doing;
  const progress = byId("progress");
  if (state.total) {
    progress.max = state.total;
    progress.value = state.done;
  } else {
    progress.removeAttribute("value");
  }
  showNumbers(state);
  showGrid(state.states);
  showFailures(state);
  showRunning(state);
  showRecent(state);
  document.querySelector("main").hidden = false;
}

/** Exchanges the token in the address for a cookie, and removes it from the address. */
async function openSession() {
  const token = location.hash.slice(1);
  if (!token) return;
  history.replaceState(null, "", location.pathname);
  const answer = await fetch("/session", { method: "POST", body: JSON.stringify({ token }), credentials: "same-origin" });
  if (!answer.ok) throw new Error((await answer.json()).problem);
}

function follow() {
  const events = new EventSource("/state");
  let hasState = false;
  events.onmessage = (event) => {
    const state = JSON.parse(event.data);
    hasState = true;
    show(state);
    if (state.ended) events.close();
  };
  events.onerror = () => {
    // A command that ended leaves nothing to connect to again.
    events.close();
    byId("state").textContent = "disconnected";
    showProblem(hasState ? "the command does not answer: it has ended" : "open the address that durasim has printed: it has the token");
  };
}

showLegend();
openSession().then(follow, (error) => showProblem(error.message));
