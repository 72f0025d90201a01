// "I looked at one job, and read another one's output under its name": answers that come when something else is looked at
// by then. The page's own script, in a document that has no more than its elements; each answer comes when it is told to.
'use strict';

const fs = require('fs');
const path = require('path');
const vm = require('vm');

const folder = path.join(__dirname, '..', '..', 'rendezvous', 'pages', 'page');
let failed = 0;

function check(what, holds) {
  console.log((holds ? 'ok      ' : 'FAILED  ') + what);
  if (!holds) ++failed;
}

function element() {
  const own = {
    textContent: '', value: '', hidden: false, dataset: {}, style: {}, children: [], listeners: {},
    append() {}, replaceChildren() {}, setAttribute() {}, focus() {}, contains: () => false, closest: () => null,
    querySelector: () => element(), querySelectorAll: () => [],
    addEventListener(kind, heard) { own.listeners[kind] = heard; },
  };
  own.firstChild = own;
  return own;
}

// A page that has been told of these jobs.
function open(names) {
  const elements = new Proxy({}, {get: (made, id) => made[id] || (made[id] = element())});
  const asked = [];  // what was fetched: its path, and how to answer
  const listeners = {};
  const page = {
    document: {
      getElementById: (id) => elements[id],
      createElement: element,
      activeElement: null,
      hidden: false,
      title: '',
    },
    location: {hash: ''},
    sessionStorage: {getItem: () => 'token', setItem() {}},
    fetch: (where) => new Promise((resolve) => {
      asked.push({where, answer: (body) => resolve({ok: true, status: 200, text: () => Promise.resolve(JSON.stringify(body))})});
    }),
    addEventListener: (kind, heard) => { listeners[kind] = heard; },
    setInterval() {},
    setTimeout,
    TextDecoderStream: class {},
  };
  vm.createContext(page);
  for (const file of ['ranks.js', 'page.js']) vm.runInContext(fs.readFileSync(path.join(folder, file), 'utf8'), page, file);
  const tell = (jobs) => { page.line = 'data: ' + JSON.stringify(jobs); vm.runInContext('take(line)', page); };
  const none = {columns: [], rows: [], more: 0};
  const job = (run_id, more) => ({run_id, state: 'running', outcome: null, message: '', round: 0, max_nodes: 1, restarts: 0, max_restarts: 0,
    age_seconds: 5, nodes: [], rounds: [], shown: {state: 'running', facts: [], alerts: none, ranks: none, rounds: none}, ...more});
  tell(names.map((name) => job(name)));
  return {
    elements, asked, tell, job,
    choose(name) { page.location.hash = '#job=' + name; listeners.hashchange(); },
    ask() { elements.rank.value = '0'; elements.logs.listeners.submit({preventDefault() {}}); return asked[asked.length - 1]; },
    enter(token) { elements.token.value = token; elements.ask.listeners.submit({preventDefault() {}}); },
  };
}

const settled = () => new Promise((done) => setTimeout(done, 0));

(async () => {
  let page = open(['one', 'two']);
  const shows = (text) => !page.elements.output.hidden && page.elements.output.textContent === text;
  const isEmpty = () => (page.elements.output.hidden || page.elements.output.textContent === '') && page.elements.told.textContent === '';
  page.ask().answer({text: 'of one', round: 0});
  await settled();
  check('the output of a job is shown', shows('of one'));

  page.choose('two');
  check('it goes when another job is chosen', isEmpty());
  const late = page.ask();
  page.choose('one');
  late.answer({text: 'of two', round: 0});
  await settled();
  check('an answer that comes when another job is chosen is not shown', isEmpty());

  const first = page.ask();
  page.ask().answer({text: 'the second', round: 0});
  await settled();
  first.answer({text: 'the first', round: 0});
  await settled();
  check('an answer that a later one has overtaken is not shown', shows('the second'));

  page = open(['one', 'two']);
  const gone = page.ask();
  page.tell([page.job('two')]);
  gone.answer({text: 'of one', round: 0});
  await settled();
  check('nor is one of a job that has gone, in whose place another is looked at', isEmpty());

  page = open(['one']);
  const foreign = page.ask();
  page.enter('another token');
  foreign.answer({text: 'of one', round: 0});
  await settled();
  check('nor is one that was asked for with another token', isEmpty());

  page = open([]);
  page.tell([page.job('one', {state: 'ended', outcome: 'worker_failed'})]);
  const failure = page.asked.find((each) => each.where.endsWith('/jobs/one'));
  failure.answer({run_id: 'one', age_seconds: 1, failure: {rank: 3, local_rank: 0, host: '', what: '', error: '', operations: '', log: '', error_file: '',
    traceback: 'of a later one', stderr: ''}});
  await settled();
  check('a failure of a later job of the same name is not shown', page.elements['failure-text'].textContent === '');
  process.exit(failed === 0 ? 0 : 1);
})();
