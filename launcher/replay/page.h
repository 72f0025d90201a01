// The script of the page in html_view.cc: the grid of the selected round, and the keys. The page's
// policy has its hash. Text enters the page by textContent only.
#pragma once

namespace muster::launcher {

inline constexpr char kPageScript[] = R"script(
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const grid = document.getElementById("grid");
const detail = document.getElementById("detail");
const events = document.getElementById("events");
const buttons = Array.from(document.querySelectorAll("button.round"));
const states = { s: "succeeded", f: "failed", x: "stopped", e: "open", w: "waiting" };
const words = {
  succeeded: "succeeded", failed: "failed", stopped: "was stopped",
  open: "may have run on: its log ends", waiting: "never ran",
};

function make(name, className, text) {
  const element = document.createElement(name);
  element.className = className;
  element.textContent = text;
  return element;
}

function cell(state, text, sentence) {
  const made = make("button", "cell " + state, text);
  made.type = "button";
  made.tabIndex = -1;
  made.title = sentence;
  made.setAttribute("aria-label", sentence);
  return made;
}

function rankCells(member, state, failed) {
  const [node, first, workers] = member;
  const row = make("div", "node", "");
  row.append(make("span", "name", data.nodes[node]));
  for (let rank = first; rank < first + workers; ++rank) {
    // Of a node with a failure, the other ranks were stopped.
    const own = state !== "failed" ? state : rank === failed || failed < 0 ? "failed" : "stopped";
    row.append(cell(own, String(rank), "rank " + rank + " on " + data.nodes[node] + " " + words[own]));
  }
  return row;
}

function nodeCell(member, state, failed) {
  const [node, first, workers] = member;
  const ranks = workers === 1 ? "rank " + first : "ranks " + first + " to " + (first + workers - 1);
  const blame = failed >= 0 ? ", rank " + failed + " first" : "";
  return cell(state, String(first), data.nodes[node] + ", " + ranks + ": " + words[state] + blame);
}

function showRound(index) {
  const round = data.rounds[index];
  const layout = data.layouts[round.layout];
  const failures = new Map(round.failed);
  grid.className = data.byNode ? "nodes" : "ranks";
  grid.replaceChildren(...layout.map((member, at) => {
    const state = states[round.states[at]];
    const failed = failures.has(at) ? failures.get(at) : -1;
    return data.byNode ? nodeCell(member, state, failed) : rankCells(member, state, failed);
  }));
  const first = grid.querySelector("button");
  if (first) first.tabIndex = 0;
  document.getElementById("which").textContent = "Round " + round.number;
  detail.textContent = round.missing > 0 ? round.missing + " more nodes have no log" : "";
  events.replaceChildren(...round.events.map(([at, what, times]) => {
    const again = times > 1 ? ` (${times} times)` : "";
    return make("li", "", `${(at / 1000).toFixed(3)} s: ${what}${again}`);
  }));
  if (round.more > 0) events.append(make("li", "faint", `and ${round.more} more`));
  buttons.forEach((button, at) => button.setAttribute("aria-pressed", String(at === index)));
}

// Where a key leads from the item `at` of a list; -1: nowhere.
function step(key, at, count) {
  if (key === "Home") return 0;
  if (key === "End") return count - 1;
  const by = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[key];
  return by === undefined ? -1 : Math.min(count - 1, Math.max(0, at + by));
}

buttons.forEach((button, index) => {
  button.addEventListener("click", () => showRound(index));
  button.addEventListener("focus", () => showRound(index));
  button.addEventListener("keydown", (event) => {
    const to = step(event.key, index, buttons.length);
    if (to < 0) return;
    event.preventDefault();
    buttons[to].focus();
  });
});

grid.addEventListener("keydown", (event) => {
  const cells = Array.from(grid.querySelectorAll("button"));
  const to = step(event.key, cells.indexOf(document.activeElement), cells.length);
  if (to < 0) return;
  event.preventDefault();
  cells.forEach((other) => { other.tabIndex = -1; });
  cells[to].tabIndex = 0;
  cells[to].focus();
});
grid.addEventListener("focusin", (event) => { detail.textContent = event.target.title; });
grid.addEventListener("click", (event) => {
  if (event.target.title) detail.textContent = event.target.title;
});

if (buttons.length > 0) showRound(data.chosen);
)script";

// The style of the page in html_view.cc. The page's policy has its hash.

inline constexpr char kPageStyle[] = R"(
:root {
  color-scheme: light dark;
  --paper: #ffffff; --ink: #1b1f24; --faint: #57606a; --line: #d0d7de; --focus: #0550ae;
  --good: #1a7f37; --bad: #cf222e; --stopped: #59636e; --open: #9a6700; --none: #eaeef2;
  --stopping: #bc4c00; --gathering: #8250df; --starting: #0969da; --progress: #57606a;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #0d1117; --ink: #e6edf3; --faint: #9198a1; --line: #3d444d; --focus: #79c0ff;
    --good: #3fb950; --bad: #f85149; --stopped: #6e7681; --open: #d29922; --none: #262c36;
    --stopping: #f0883e; --gathering: #ab7df8; --starting: #4493f8; --progress: #8b949e;
  }
}
body { margin: 0 auto; max-width: 70rem; padding: 1rem; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 1.6rem 0 0.4rem; }
p { margin: 0.2rem 0; overflow-wrap: anywhere; }
.faint { color: var(--faint); }
.figure { font-size: 2rem; font-weight: 600; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; color: var(--faint); font-weight: 600; }
th, td { padding: 0.2rem 0.6rem 0.2rem 0; border-bottom: 1px solid var(--line); vertical-align: top; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
td.words { overflow-wrap: anywhere; min-width: 12rem; }
button { font: inherit; color: inherit; background: var(--none); border: 1px solid var(--line);
  border-radius: 4px; padding: 0 0.6rem; cursor: pointer; }
button:focus-visible { outline: 3px solid var(--focus); outline-offset: 1px; }
button[aria-pressed=true] { background: var(--focus); color: var(--paper); }
svg { display: block; width: 100%; height: 1.4rem; }
td svg { min-width: 14rem; }
.useful { fill: var(--good); } .useless { fill: var(--open); } .idle { fill: var(--none); }
.stopping { fill: var(--stopping); } .gathering { fill: var(--gathering); }
.starting { fill: var(--starting); } .progress { fill: var(--progress); }
.key { display: inline-block; width: 0.8rem; height: 0.8rem; vertical-align: -0.1rem;
  margin: 0 0.3rem 0 0.8rem; border-radius: 2px; }
.key.useful { background: var(--good); } .key.useless { background: var(--open); }
.key.stopping { background: var(--stopping); } .key.gathering { background: var(--gathering); }
.key.starting { background: var(--starting); } .key.progress { background: var(--progress); }
#grid { display: flex; flex-wrap: wrap; gap: 3px; }
#grid.ranks .node { flex: 0 0 100%; }
.node { display: flex; flex-wrap: wrap; gap: 3px; align-items: center; }
.node .name { flex: 0 0 14rem; overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
  color: var(--faint); font-size: 0.85rem; }
.cell { min-width: 1.9rem; height: 1.5rem; padding: 0 2px; font-size: 0.75rem; border: 0; color: #fff; }
.cell.succeeded { background: var(--good); } .cell.failed { background: var(--bad); }
.cell.stopped { background: var(--stopped); } .cell.open { background: var(--open); }
.cell.waiting { background: var(--none); color: var(--ink); }
@media (prefers-color-scheme: dark) { .cell { color: #000; } .cell.waiting { color: var(--ink); } }
#detail { min-height: 1.5rem; margin-top: 0.4rem; }
@media (max-width: 40rem) {
  body { padding: 0.6rem; }
  .node .name { flex-basis: 100%; }
}
)";

}  // namespace muster::launcher
