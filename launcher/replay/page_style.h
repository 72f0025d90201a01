// The style of the page that html_view.h makes. Its content is hashed for the page's policy.
#pragma once

namespace muster::launcher {

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
.bars td.bar { width: 45%; min-width: 10rem; }
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
  .bars td.bar { width: auto; }
}
)";

}  // namespace muster::launcher
