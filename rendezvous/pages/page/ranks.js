// The grid of ranks: a button for each, one of which is in the order of Tab; the arrow keys go from there. Loaded before
// page.js, whose functions it calls once there is something to draw.
'use strict';

const FAILED = 'failed before';
let cellAt = '';  // Which cell was chosen last: its place on its node, a blank, and the node.

// The ranks of each node, with what marks them; a rank is '' where it cannot be told which one it is.
function cellsOf(job) {
  const failed = new Set(job.rounds.map((round) => round.failed_rank));
  return job.nodes.map((node) => {
    const slow = new Set(node.ranks.filter((rank) => rank.straggler).map((rank) => rank.rank));
    const wrong = new Set(node.alerts.map((alert) => alert.rank));
    return Array.from({length: node.nproc}, (_, i) => {
      const rank = node.node_rank !== null && node.first_rank !== null ? node.first_rank + i : '';
      return {rank, marks: [node.state, ...(slow.has(rank) ? [SLOW] : []), ...(wrong.has(rank) ? [TROUBLE] : []),
        ...(failed.has(rank) ? [FAILED] : [])]};
    });
  });
}

function drawRanks(job) {
  const all = cellsOf(job);
  if (isNew('ranks', [job.run_id, all, job.nodes.map((node) => [node.node_id, node.host, node.place])])) {
    const had = grid.contains(document.activeElement);
    grid.replaceChildren(...job.nodes.map((node, at) => {
      const row = make('div', undefined, 'node');
      const cells = make('div', undefined, 'cells');
      all[at].forEach(({rank, marks}, i) => {
        const cell = make('button', rank, marks.join(' ').replace(FAILED, 'failed'));
        cell.type = 'button';
        cell.tabIndex = -1;
        cell.dataset.at = i + ' ' + node.node_id;
        cell.dataset.rank = rank;
        cell.title = (rank === '' ? 'no rank' : 'rank ' + rank) + ' on ' + node.host + ': ' + marks.join(', ');
        cell.setAttribute('aria-label', cell.title);
        cells.append(cell);
      });
      const name = make('span', node.host);
      name.append(make('small'));
      row.append(name, cells);
      row.setAttribute('role', 'group');
      row.setAttribute('aria-label', node.host + ': ' + node.nproc + ' ranks ' + node.state + (node.place ? ', ' + node.place : ''));
      return row;
    }));
    const cell = [...grid.querySelectorAll('button')].find((one) => one.dataset.at === cellAt) || grid.querySelector('button');
    if (cell) cell.tabIndex = 0;
    if (cell && had) cell.focus();
  }
  grid.querySelectorAll('small').forEach((state, at) => {
    const node = job.nodes[at];
    state.textContent = node.state + (node.state_seconds === null ? '' : ' for ' + elapsed(node.state_seconds + passed()));
  });
  setText('who', rankInWords(job));
}

// All that is known of the rank that was chosen last.
function rankInWords(job) {
  const [place] = cellAt.split(' ', 1);
  const node = job.nodes.find((one) => one.node_id === cellAt.slice(place.length + 1));
  if (!node || node.node_rank === null || node.first_rank === null) return '';
  const rank = node.first_rank + Number(place);
  const told = node.ranks.find((one) => one.rank === rank);
  const rounds = job.rounds.filter((round) => round.failed_rank === rank).map((round) => round.round);
  return ['rank ' + rank + ' on ' + node.host + ', local rank ' + place + ': ' + node.state +
      (node.state_seconds === null ? '' : ' for ' + elapsed(node.state_seconds + passed())),
    ...(told && told.step !== null ? ['step ' + told.step] : []),
    ...(told ? ['beat ' + elapsed(told.beat_seconds_ago + passed()) + ' ago'] : []),
    ...(told && told.straggler ? ['straggler ' + Math.round(100 * told.straggler.slower) + ' % slower, most in ' + told.straggler.phase +
      ', for ' + elapsed(told.straggler.for_seconds + passed())] : []),
    ...node.alerts.filter((alert) => alert.rank === rank).map((alert) => alert.what + ' ' + elapsed(alert.for_seconds + passed()) + ' ago'),
    ...(rounds.length ? ['was the first to fail in round ' + rounds.join(', ')] : [])].join('; ');
}

function chooseCell(cell) {
  grid.querySelectorAll('[tabindex="0"]').forEach((one) => { one.tabIndex = -1; });
  cell.tabIndex = 0;
  cellAt = cell.dataset.at;
  if (chosen()) setText('who', rankInWords(chosen()));
}

// The cell to which a key leads: left and right to the next one, up and down to the nearest of the next line.
function cellBy(key, from) {
  const cells = [...grid.querySelectorAll('button')];
  const at = cells.indexOf(from);
  const step = {ArrowLeft: -1, ArrowRight: 1}[key];
  if (step) return cells[at + step];
  if (key === 'Home') return cells[0];
  if (key === 'End') return cells[cells.length - 1];
  const place = (cell) => cell.getBoundingClientRect();
  const here = place(from);
  const line = (key === 'ArrowUp' ? cells.slice(0, at).reverse() : cells.slice(at)).map((cell) => [cell, place(cell)])
    .filter(([, there]) => Math.abs(there.top - here.top) > 1);
  const near = line.filter(([, there]) => Math.abs(there.top - line[0][1].top) <= 1);
  near.sort(([, one], [, other]) => Math.abs(one.left - here.left) - Math.abs(other.left - here.left));
  return near.length ? near[0][0] : undefined;
}

const grid = document.getElementById('ranks');
grid.addEventListener('focusin', (event) => chooseCell(event.target));
grid.addEventListener('click', (event) => {
  const cell = event.target.closest('button');
  if (!cell || cell.dataset.rank === '') return;
  chooseCell(cell);
  byId('rank').value = cell.dataset.rank;
  byId('round').value = '';
  showOutput();
});
grid.addEventListener('keydown', (event) => {
  if (!['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Home', 'End'].includes(event.key)) return;
  event.preventDefault();
  const cell = cellBy(event.key, event.target);
  if (cell) cell.focus();
});
