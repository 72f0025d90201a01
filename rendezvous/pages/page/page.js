// Shows what /api/v1/events tells: the daemon's jobs, whole, whenever something has changed. Which facts, columns and rows
// are shown of a job, and in which words, the daemon says in `shown` (rendezvous/pages/job_view.h). Everything that comes
// from there is put in as text. The grid of ranks is in ranks.js.
'use strict';

const KEY = 'muster-token';
const STATES = ['running', 'starting', 'stopping', 'succeeded'];
const SLOW = 'straggler';
const TROUBLE = 'trouble';
const byId = (id) => document.getElementById(id);
let jobs = [];      // As the daemon said it,
let received = 0;   // and when.
let live = false;
let token = sessionStorage.getItem(KEY) || '';
let drawn = {};     // What was drawn last, by the id of its element.

function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

// What nobody would see is '?', as in `muster status`: it could turn the text around that follows it, or make two names
// look the same.
const UNSEEN = /[\p{Default_Ignorable_Code_Point}\p{Bidi_Control}\u2028\u2029\ufff9-\ufffb]|[^\P{Cc}\n\t]/gu;
const shown = (text) => text.replace(UNSEEN, '?');
// All texts of an answer are shown, but for the run id, by which a job is asked for.
const parsed = (json) => JSON.parse(json, (key, value) => (typeof value === 'string' && key !== 'run_id' ? shown(value) : value));

// "." and ".." alone would be steps in the path.
const pathOf = (job) => '/api/v1/jobs/' + encodeURIComponent(job.run_id) + (/^\.\.?$/.test(job.run_id) ? ';' : '');

// What is there already stays: a text that is being marked, and a button that is being pressed.
function setText(id, text) {
  if (byId(id).textContent !== text) byId(id).textContent = text;
}

function isNew(id, content) {
  const key = JSON.stringify(content);
  const changed = drawn[id] !== key;
  drawn[id] = key;
  return changed;
}

function makeFact(name, value) {
  const fact = make('div');
  fact.append(make('dt', name), make('dd', value));
  return fact;
}

function authorization() { return token ? {Authorization: 'Bearer ' + token} : {}; }

// What has passed since the daemon said it, in seconds, while there is a connection.
const passed = () => (live ? (Date.now() - received) / 1000 : 0);

// As base::Elapsed() has it.
function elapsed(seconds) {
  const two = (number) => String(Math.floor(number)).padStart(2, '0');
  if (seconds < 1) return Math.round(seconds * 1000) + ' ms';
  if (seconds < 10) return (seconds % 1 === 0 ? seconds : seconds.toFixed(1)) + ' s';
  if (seconds < 120) return Math.round(seconds) + ' s';
  if (seconds < 3600) return Math.floor(seconds / 60) + ' min ' + two(seconds % 60) + ' s';
  if (seconds < 172800) return Math.floor(seconds / 3600) + ' h ' + two(seconds / 60 % 60) + ' min';
  return Math.floor(seconds / 86400) + ' d ' + two(seconds / 3600 % 24) + ' h';
}

// A cell's text, or [before, seconds, after] with a time that goes on.
const words = (cell) => (typeof cell === 'string' ? cell : cell[0] + elapsed(cell[1] + passed()) + cell[2]);

// What is named in the address stays chosen, also when it is bookmarked.
function chosen() {
  const name = location.hash.replace(/^#job=/, '');
  return jobs.find((job) => encodeURIComponent(job.run_id) === name || job.run_id === name) || jobs[0];
}

function drawJobs(current) {
  const list = byId('jobs');
  byId('none').hidden = jobs.length > 0;
  if (!isNew('jobs', jobs.map((job) => [job.run_id, job.shown.state, job.round, job === current]))) return;
  const focused = document.activeElement && document.activeElement.dataset.job;
  list.replaceChildren(...jobs.map((job) => {
    const button = make('button', undefined, job.state + ' ' + (job.outcome || ''));
    button.dataset.job = job.run_id;
    button.append(make('strong', shown(job.run_id)), make('span', job.shown.state + ', round ' + job.round));
    if (job === current) button.setAttribute('aria-current', 'true');
    button.addEventListener('click', () => { location.hash = '#job=' + encodeURIComponent(job.run_id); });
    const item = make('li');
    item.append(button);
    return item;
  }));
  if (focused) for (const button of list.querySelectorAll('button')) if (button.dataset.job === focused) button.focus();
}

// A table in an element of the page, which is hidden without rows. `decorate` may add to what is drawn of a row.
function drawTable(id, table, decorate = () => {}) {
  const section = byId(id);
  section.hidden = table.rows.length === 0;
  const heads = make('tr');
  heads.append(...table.columns.map((name) => make('th', name)));
  for (const head of heads.children) head.scope = 'col';
  const rows = table.rows.map(({cells, stands_out}, at) => {
    const row = make('tr', undefined, stands_out ? SLOW : '');
    row.append(...cells.map((cell, column) => make(column === 0 ? 'th' : 'td', words(cell))));
    row.firstChild.scope = 'row';
    decorate(row, at);
    return row;
  });
  section.querySelector('thead').replaceChildren(heads);
  section.querySelector('tbody').replaceChildren(...rows);
  section.querySelector('.more').textContent = table.more > 0 ? 'and ' + table.more + ' more' : '';
}

// Parts of a whole, as wide as they are long.
function makeBar(parts, longest) {
  const bar = make('div', undefined, 'bar');
  bar.append(...parts.map(([kind, seconds]) => {
    const part = make('b', undefined, kind);
    part.style.width = 100 * seconds / longest + '%';
    return part;
  }));
  bar.setAttribute('aria-hidden', 'true');
  return bar;
}

function drawSteps(job) {
  const told = new Map(job.nodes.flatMap((node) => node.ranks).map((rank) => [String(rank.rank), rank.phases]));
  const phases = job.shown.ranks.rows.map((row) => told.get(row.cells[0]).map((phase) => [phase.waits ? 'waits' : 'runs', phase.seconds]));
  const longest = Math.max(...phases.map((parts) => parts.reduce((sum, [, seconds]) => sum + seconds, 0)), 1e-6);
  drawTable('steps', job.shown.ranks, (row, at) => row.lastChild.prepend(makeBar(phases[at], longest)));
}

function drawRounds(job) {
  const times = job.rounds.map((round) => [['gathers', round.gathered_seconds || 0], ['runs', round.ran_seconds]]);
  const longest = Math.max(...times.map(([gathered, ran]) => gathered[1] + ran[1]), 0.001);
  drawTable('rounds', job.shown.rounds, (row, at) => row.lastChild.prepend(makeBar(times[at], longest)));
}

// The list of jobs does not have what a failed rank wrote: that is fetched for the job that is looked at.
let failures = {};  // By job and the age at which it ended.

function drawFailure(job) {
  const key = job.run_id + '@' + job.age_seconds;
  const section = byId('failure');
  section.hidden = !failures[key];
  if (job.outcome !== 'worker_failed') return;
  if (failures[key] === undefined) {
    failures = {[key]: null};
    fetch(pathOf(job), {headers: authorization(), cache: 'no-store'})
      .then((answer) => answer.ok ? answer.text().then(parsed) : Promise.reject(answer.status))
      .then((told) => {
        // Another job of that name may have begun since, or another have been looked at.
        if (failures[key] === undefined || told.run_id + '@' + told.age_seconds !== key) return;
        failures[key] = told.failure || null;
        draw();
      })
      .catch(() => { delete failures[key]; });
    return;
  }
  const failure = failures[key];
  if (!failure || section.dataset.shows === key) return;
  section.dataset.shows = key;
  const facts = [['rank', failure.rank + ' (local ' + failure.local_rank + ')'], ['host', failure.host], ['what', failure.what],
    ['error', failure.error], ['operations', failure.operations], ['log', failure.log], ['error file', failure.error_file]];
  byId('failure-facts').replaceChildren(...facts.filter((fact) => fact[1] !== '').map(([name, value]) => makeFact(name, value)));
  byId('failure-text').textContent = failure.traceback || failure.stderr;
  byId('failure-text').hidden = !byId('failure-text').textContent;
}

function draw() {
  const job = chosen();
  drawJobs(job);
  byId('job').hidden = !job;
  document.title = job ? shown(job.run_id) + ': ' + job.shown.state + ' · Muster' : 'Muster';
  // It changes by itself, too, as jobs come and go.
  if (askedOf && (!job || job.run_id !== askedOf)) forgetOutput();
  if (!job) return;
  setText('name', shown(job.run_id));
  setText('message', job.message);
  byId('facts').replaceChildren(...job.shown.facts.map(([name, cell]) => makeFact(name, words(cell))));
  drawFailure(job);
  drawTable('wrong', job.shown.alerts);
  drawRanks(job);
  drawSteps(job);
  drawRounds(job);
}

// The last lines of a rank, asked for once. An answer is shown only if nothing else has been asked for, or looked at, since.
let asked = 0;
let askedOf = '';  // The job, until its output is no longer shown.

function forgetOutput() {
  ++asked;
  askedOf = '';
  byId('output').hidden = true;
  byId('output').textContent = '';
  byId('told').textContent = '';
}

async function showOutput() {
  const job = chosen();
  if (!job) return;
  const mine = ++asked;
  askedOf = job.run_id;
  const rank = byId('rank').value;
  const round = byId('round').value;
  const path = pathOf(job) + '/logs?rank=' + rank + (round === '' ? '' : '&round=' + round);
  byId('told').textContent = 'asking its node';
  let told = {};
  try {
    const answer = await fetch(path, {headers: authorization(), cache: 'no-store'});
    told = parsed(await answer.text());
  } catch (error) {
    told = {error: 'no answer; try again'};
  }
  if (mine !== asked) return;
  const output = byId('output');
  output.hidden = !told.text;
  output.textContent = told.text || '';
  output.scrollTop = output.scrollHeight;
  const what = told.error || (told.text ? 'rank ' + rank + ' in round ' + told.round : 'rank ' + rank + ' has printed nothing in round ' + told.round);
  byId('told').textContent = [what, ...(told.notices || [])].join('; ');
}

function say(text) { byId('connection').textContent = text; }

function askForToken(why) {
  say('a token is needed');
  byId('ask').hidden = false;
  byId('refused').textContent = why;
  byId('token').focus();
}

// Lines of the stream as they come; "data: " has the jobs, anything else keeps the connection alive.
function take(line) {
  if (!line.startsWith('data: ')) return;
  jobs = parsed(line.slice(6));
  received = Date.now();
  draw();
}

async function watch() {
  const headers = authorization();
  let pause = 1000;
  for (;;) {
    try {
      const answer = await fetch('/api/v1/events', {headers, cache: 'no-store'});
      if (answer.status === 401) return askForToken(token ? 'This token opens nothing here.' : '');
      if (!answer.ok) throw new Error('status ' + answer.status);
      say('live');
      live = true;
      pause = 1000;
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = '';
      for (;;) {
        const {value, done} = await reader.read();
        if (done) break;
        const lines = (rest + value).split('\n');
        rest = lines.pop();
        lines.forEach(take);
      }
    } catch (error) {
      // It is said below; the daemon may be about to be started again.
    }
    live = false;
    say(received ? 'no connection since ' + new Date(received).toLocaleTimeString() + '; trying again' : 'no connection; trying again');
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(pause * 2, 8000);
  }
}

byId('ask').addEventListener('submit', (event) => {
  event.preventDefault();
  token = byId('token').value.trim();
  // What was seen with another one is not this one's.
  forgetOutput();
  failures = {};
  jobs = [];
  draw();
  sessionStorage.setItem(KEY, token);
  byId('token').value = '';
  byId('ask').hidden = true;
  watch();
});
byId('logs').addEventListener('submit', (event) => {
  event.preventDefault();
  showOutput();
});
byId('legend').replaceChildren(...[...STATES, SLOW, TROUBLE, FAILED].flatMap((state) => {
  const item = make('span');
  item.append(make('i', undefined, state.split(' ')[0]), state);
  return [item, ' '];
}));
addEventListener('hashchange', () => {
  forgetOutput();
  cellAt = '';
  draw();
});
setInterval(() => { if (live && jobs.length && !document.hidden) draw(); }, 1000);
watch();
