// Shows what /api/v1/events tells: the daemon's jobs, whole, whenever something has changed. Everything that comes from
// there is put in as text. The grid of ranks is in ranks.js.
'use strict';

const KEY = 'muster-token';
const STATES = ['running', 'starting', 'stopping', 'succeeded'];
const SLOW = 'straggler';
const TROUBLE = 'trouble';
const MOST_RANKS = 64;  // in the table
const byId = (id) => document.getElementById(id);
let told = [];      // As the daemon said it,
let jobs = [];      // and with the time that has passed since, while there is a connection.
let received = 0;
let live = false;
let token = sessionStorage.getItem(KEY) || '';
let drawn = {};     // What was drawn last, by the id of its element.

function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

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

// How it ended, rather than that it did.
function stateOf(job) {
  return {worker_failed: 'failed', join_timeout: 'timed out', succeeded: 'succeeded', closed: 'closed'}[job.outcome] || job.state;
}

function duration(seconds) {
  if (seconds < 1) return Math.round(seconds * 1000) + ' ms';
  if (seconds < 10) return seconds.toFixed(1) + ' s';
  if (seconds < 120) return Math.round(seconds) + ' s';
  if (seconds < 7200) return Math.round(seconds / 60) + ' min';
  return (seconds / 3600).toFixed(1) + ' h';
}

// Three digits, of what is told and may not be there; a loss that is no number is a word.
function figure(value) {
  if (value === null || typeof value === 'string') return value || '';
  return value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-4) ? value.toExponential(2) : String(Number(value.toPrecision(4)));
}

function brief(seconds) {
  if (seconds === null) return '';
  return seconds < 1 ? Number((seconds * 1000).toPrecision(3)) + ' ms' : Number(seconds.toPrecision(3)) + ' s';
}

// What is named in the address stays chosen, also when it is bookmarked. Names have no letters that need an escape.
function chosen() {
  const name = location.hash.replace(/^#job=/, '');
  return jobs.find((job) => job.run_id === name) || jobs[0];
}

function goodput(job) {
  return job.age_seconds > 0 ? Math.floor(100 * job.productive_seconds / job.age_seconds) + ' %' : 'not known yet';
}

function drawJobs(current) {
  const list = byId('jobs');
  byId('none').hidden = jobs.length > 0;
  if (!isNew('jobs', jobs.map((job) => [job.run_id, job.state, job.outcome, job.round, job === current]))) return;
  const focused = document.activeElement && document.activeElement.dataset.job;
  list.replaceChildren(...jobs.map((job) => {
    const button = make('button', undefined, job.state + ' ' + (job.outcome || ''));
    button.dataset.job = job.run_id;
    button.append(make('strong', job.run_id), make('span', stateOf(job) + ', round ' + job.round));
    if (job === current) button.setAttribute('aria-current', 'true');
    button.addEventListener('click', () => { location.hash = '#job=' + encodeURIComponent(job.run_id); });
    const item = make('li');
    item.append(button);
    return item;
  }));
  if (focused) for (const button of list.querySelectorAll('button')) if (button.dataset.job === focused) button.focus();
}

// What is wrong with ranks whose round goes on.
function drawTroubles(job) {
  const troubles = job.nodes.flatMap((node) => node.troubles.map((trouble) => ({host: node.host, ...trouble})));
  byId('wrong').hidden = troubles.length === 0;
  byId('troubles').replaceChildren(...troubles.slice(0, MOST_RANKS).map((trouble) => {
    const item = make('li', 'rank ' + trouble.rank + ' on host ' + trouble.host + ' ' + trouble.what + ' ');
    item.append(make('span', duration(trouble.for_seconds) + ' ago', 'when'));
    return item;
  }), ...(troubles.length > MOST_RANKS ? [make('li', 'and ' + (troubles.length - MOST_RANKS) + ' more')] : []));
}

function slowness(straggler) {
  return Math.round(100 * straggler.slower) + ' % slower than the median rank, most in ' + straggler.phase + ', for ' + duration(straggler.for_seconds);
}

function phasesBar(rank, longest) {
  const bar = make('div', undefined, 'bar');
  for (const phase of rank.phases) {
    const part = make('b', undefined, phase.waits ? 'waits' : '');
    part.style.width = 100 * phase.seconds / longest + '%';
    part.title = phase.name + ' ' + brief(phase.seconds);
    bar.append(part);
  }
  bar.setAttribute('aria-hidden', 'true');
  return bar;
}

// Those that tell of their steps: the first, and all that are slow.
function drawSteps(job) {
  const all = job.nodes.flatMap((node) => node.ranks.map((rank) => ({host: node.host, ...rank})));
  const ranks = all.filter((rank, index) => index < MOST_RANKS || rank.straggler);
  byId('steps').hidden = all.length === 0;
  byId('more').textContent = all.length > ranks.length ? 'and ' + (all.length - ranks.length) + ' more ranks' : '';
  const longest = Math.max(...ranks.map((rank) => rank.phases.reduce((sum, phase) => sum + phase.seconds, 0)), 1e-6);
  byId('step-rows').replaceChildren(...ranks.map((rank) => {
    const row = make('tr', undefined, rank.straggler ? SLOW : '');
    const phases = make('td');
    phases.append(phasesBar(rank, longest), make('span', rank.phases.map((phase) => phase.name + ' ' + brief(phase.seconds)).join(', '), 'when'));
    if (rank.straggler) phases.append(make('div', slowness(rank.straggler), 'cause'));
    row.append(make('th', rank.rank), make('td', rank.host), make('td', rank.step === null ? '' : rank.step),
      make('td', duration(rank.beat_seconds_ago)), make('td', rank.step_seconds ? figure(1 / rank.step_seconds) : ''),
      make('td', figure(rank.loss)), make('td', figure(rank.samples_per_second)), phases);
    row.firstChild.scope = 'row';
    return row;
  }));
}

// What the ranks that tell have in common.
function stepFacts(job) {
  const ranks = job.nodes.flatMap((node) => node.ranks);
  const facts = [];
  const steps = ranks.map((rank) => rank.step).filter((step) => step !== null);
  if (steps.length) facts.push(['step', steps.reduce((least, step) => Math.min(least, step))]);
  const loss = ranks.find((rank) => rank.loss !== null);
  if (loss) facts.push(['loss', figure(loss.loss)]);
  const samples = ranks.filter((rank) => rank.samples_per_second !== null);
  if (samples.length) facts.push(['samples per second', figure(samples.reduce((sum, rank) => sum + rank.samples_per_second, 0))]);
  if (ranks.length) facts.push(['stragglers', ranks.filter((rank) => rank.straggler).length]);
  return facts;
}

function drawRounds(job) {
  const longest = Math.max(...job.rounds.map((round) => (round.gathered_seconds || 0) + round.ran_seconds), 0.001);
  byId('rounds').replaceChildren(...job.rounds.slice().reverse().map((round) => {
    const item = make('li');
    const ran = round.gathered_seconds !== null;
    const isOver = round.end || job.state === 'ended';
    item.append(make('span', 'Round ' + round.round + ', ' + duration(round.opened_seconds_ago) + ' ago', 'when'));
    const bar = make('div', undefined, 'bar');
    const gathered = make('b');
    const running = make('u');
    gathered.style.width = 100 * (round.gathered_seconds || 0) / longest + '%';
    running.style.width = 100 * round.ran_seconds / longest + '%';
    bar.append(gathered, running);
    bar.setAttribute('aria-hidden', 'true');
    item.append(bar);
    item.append(make('div', ran
      ? 'gathered in ' + duration(round.gathered_seconds) + ', ' + (isOver ? 'ran ' : 'runs for ') + duration(round.ran_seconds) +
        ' with ' + round.workers + ' ranks on ' + round.nodes + ' nodes'
      : isOver ? 'did not start' : 'gathers'));
    if (round.end) item.append(make('div', 'over: ' + round.reason, 'cause'));
    return item;
  }));
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
    fetch('/api/v1/jobs/' + encodeURIComponent(job.run_id), {headers: authorization(), cache: 'no-store'})
      .then((answer) => answer.ok ? answer.json() : {})
      .then((told) => { failures[key] = told.failure || null; draw(); })
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

// What goes on has gone on since it was told.
function aged(job, seconds) {
  const rounds = job.rounds.map((round) => ({
    ...round,
    opened_seconds_ago: round.opened_seconds_ago + seconds,
    ran_seconds: round.ran_seconds + (round.gathered_seconds !== null && !round.end && job.state === 'running' ? seconds : 0),
  }));
  if (job.state === 'ended') {
    // When is not known of one that an older daemon has remembered.
    return {...job, ended_seconds_ago: job.ended_seconds_ago === null ? null : job.ended_seconds_ago + seconds, rounds};
  }
  const runs = job.state === 'running' && !job.nodes.some((node) => node.state === 'starting') ? seconds : 0;
  const nodes = job.nodes.map((node) => ({
    ...node,
    state_seconds: node.state_seconds === null ? null : node.state_seconds + seconds,
    ranks: node.ranks.map((rank) => ({...rank, beat_seconds_ago: rank.beat_seconds_ago + seconds,
      straggler: rank.straggler && {...rank.straggler, for_seconds: rank.straggler.for_seconds + seconds}})),
    troubles: node.troubles.map((trouble) => ({...trouble, for_seconds: trouble.for_seconds + seconds})),
  }));
  return {...job, age_seconds: job.age_seconds + seconds, productive_seconds: job.productive_seconds + runs, rounds, nodes};
}

function draw() {
  const passed = live ? (Date.now() - received) / 1000 : 0;
  jobs = told.map((job) => aged(job, passed));
  const job = chosen();
  drawJobs(job);
  byId('job').hidden = !job;
  document.title = job ? job.run_id + ': ' + stateOf(job) + ' · Muster' : 'Muster';
  if (!job) return;
  setText('name', job.run_id);
  setText('message', job.message);
  const ranks = job.nodes.reduce((sum, node) => sum + (node.node_rank === null ? 0 : node.nproc), 0);
  const facts = [['state', stateOf(job)], ['nodes', job.nodes.length + ' of ' + job.max_nodes], ['ranks', ranks],
    ['restarts', job.restarts + ' of ' + job.max_restarts], ['since', duration(job.age_seconds)], ['goodput', goodput(job)],
    ...stepFacts(job)];
  if (job.ended_seconds_ago !== null) facts.push(['ended', duration(job.ended_seconds_ago) + ' ago']);
  byId('facts').replaceChildren(...facts.map(([name, value]) => makeFact(name, value)));
  drawFailure(job);
  drawTroubles(job);
  drawRanks(job);
  drawSteps(job);
  drawRounds(job);
}

// The last lines of a rank, asked for once.
async function showOutput() {
  const job = chosen();
  const rank = byId('rank').value;
  const round = byId('round').value;
  const path = '/api/v1/jobs/' + encodeURIComponent(job.run_id) + '/logs?rank=' + rank + (round === '' ? '' : '&round=' + round);
  byId('told').textContent = 'asking its node';
  let told = {};
  try {
    const answer = await fetch(path, {headers: token ? {Authorization: 'Bearer ' + token} : {}, cache: 'no-store'});
    told = await answer.json();
  } catch (error) {
    told = {error: 'no answer; try again'};
  }
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
  told = JSON.parse(line.slice(6));
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
  byId('output').hidden = true;
  byId('told').textContent = '';
  cellAt = '';
  draw();
});
setInterval(() => { if (live && told.length && !document.hidden) draw(); }, 1000);
watch();
