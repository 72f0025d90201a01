// The script of the page that html_view.h makes: the grid of the chosen round, and the keys. Its
// content is hashed for the page's policy. Texts get into the page by textContent alone.
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

}  // namespace muster::launcher
