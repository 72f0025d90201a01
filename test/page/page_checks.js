// The page as people use it: with a token, with the keyboard, on a phone, in the dark, while a job that it shows fails,
// restarts and ends, and while the daemon is started again. axe-core looks for what somebody could not read or reach.
// Prints a line for each thing that is looked at.
'use strict';

const {spawn, execFileSync} = require('child_process');
const fs = require('fs');
const os = require('os');
const path = require('path');
const axe = require('axe-core');
const {chromium} = require('playwright-core');

const [muster, musterd, browserPath, ...flags] = process.argv.slice(2);
const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'muster-page-'));
const inScratch = (name) => path.join(scratch, name);
const children = [];
let failed = 0;

function check(what, holds, seen) {
  console.log((holds ? 'ok      ' : 'FAILED  ') + what + (holds || seen === undefined ? '' : ': ' + seen));
  if (!holds) ++failed;
}

// Runs until this program ends.
function start(program, args, environment) {
  const child = spawn(program, args, {env: {...process.env, ...environment}, stdio: ['ignore', 'pipe', 'pipe']});
  child.text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes) => { child.text += bytes; });
  children.push(child);
  return child;
}

async function until(condition, what) {
  for (let i = 0; i < 600; ++i) {
    if (await condition()) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error('it did not come to: ' + what);
}

// What axe-core finds of WCAG 2.2 A and AA and of its own best practices: names, roles, contrast, size of targets.
async function checkAccess(page, where) {
  await page.evaluate(axe.source);
  const found = await page.evaluate(() => window.axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']}));
  check('axe finds nothing ' + where + ' (' + found.passes.length + ' rules)', found.passes.length > 20 && found.violations.length === 0,
    found.violations.map((one) => one.id + ': ' + one.nodes[0].target + ' ' + one.nodes[0].failureSummary.replace(/\s+/g, ' ')).join('; '));
}

// axe does not judge texts of one character, as a rank often is.
async function checkCells(page, where) {
  const least = await page.evaluate(() => {
    const light = (color) => {
      const [red, green, blue] = color.match(/[\d.]+/g).map((part) => part / 255).map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    return Math.min(...[...document.querySelectorAll('#ranks button, #grid button')].map((cell) => {
      const style = getComputedStyle(cell);
      const [one, other] = [light(style.color), light(style.backgroundColor)].sort((a, b) => b - a);
      return (one + 0.05) / (other + 0.05);
    }));
  });
  check('numbers of ranks can be read ' + where, least >= 4.5 && Number.isFinite(least), least);
}

const port = () => Number(execFileSync('python3', ['-c',
  "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); print(s.getsockname()[1])"]));

// Tells of ten steps in a second, in which rank 6 takes longer to read than the others do.
const STEPS = `
import os, socket, time
rank, beats = int(os.environ["RANK"]), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
step = 0
while not os.path.exists("${inScratch('end')}"):
    step += 1
    data = 0.04 if rank == 6 else 0.01
    beats.sendto(f"beat {rank} {step} loss={3 / (1 + step / 100):.4f} samples_per_second=640 data={data} forward=0.03 "
                 f"wait_backward={0.1 - data}".encode(), os.environ["MUSTER_BEAT_SOCKET"])
    time.sleep(0.1)
`;

async function main() {
  fs.writeFileSync(inScratch('steps.py'), STEPS);
  const token = inScratch('token');
  execFileSync(muster, ['token', 'new', token]);
  const metrics = execFileSync(muster, ['token', 'metrics', token], {encoding: 'utf8'}).trim().split('\n').pop();
  const [at, http] = [port(), port()];
  const daemon = start(musterd, [`--listen=127.0.0.1:${at}`, `--http=${http}`, `--token-file=${token}`, `--state-dir=${inScratch('state')}`]);
  await until(() => daemon.text.includes('listening on'), 'a daemon');
  const failing = () => start(muster, ['run', '--nnodes=1', `--rdzv-endpoint=127.0.0.1:${at}`, '--rdzv-id=small',
    '--rdzv-conf=is_host=0', `--token-file=${token}`, '--max-restarts=0', '--no-python', 'sh', '-c',
    'echo "no such layer: <b>fc7</b>" >&2; exit 3'], {MUSTER_RUNS_DIR: inScratch('runs-small')});
  const node = (name) => start(muster, ['run', '--nnodes=2', `--rdzv-endpoint=127.0.0.1:${at}`, '--rdzv-id=big',
    '--rdzv-conf=is_host=0', `--token-file=${token}`, '--max-restarts=2', '--nproc-per-node=4',
    `--event-log=${inScratch('events-' + name)}`, '--no-python', 'sh', '-c',
    `echo $$ >${inScratch('pid')}$RANK; echo "rank $RANK tries for the $TORCHELASTIC_RESTART_COUNT. time" >&2; if [ $RANK = 5 ] && [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then until [ -e ${inScratch('fail')} ]; do sleep 0.05; done; exit 7; fi; ` +
    `[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exec python3 ${inScratch('steps.py')}; ` +
    `until [ -e ${inScratch('end')} ]; do sleep 0.05; done`], {MUSTER_RUNS_DIR: inScratch('runs-' + name)});
  const browser = await chromium.launch({executablePath: browserPath, args: ['--no-sandbox']});
  children.push({kill: () => browser.close()});
  const context = await browser.newContext({viewport: {width: 1100, height: 760}});
  const page = await context.newPage();
  const trouble = [];
  page.on('console', (message) => { if (['error', 'warning'].includes(message.type())) trouble.push(message.text()); });
  page.on('pageerror', (error) => trouble.push(String(error)));
  const foreign = [];
  page.on('request', (request) => { if (!request.url().startsWith(`http://127.0.0.1:${http}/`)) foreign.push(request.url()); });
  const text = (selector) => page.textContent(selector);
  const shows = (selector, part) => until(async () => ((await text(selector)) || '').includes(part), `${part} in ${selector}`);

  await page.goto(`http://127.0.0.1:${http}/`);
  await page.waitForSelector('#ask:not([hidden])');
  check('without a token nothing is shown, and one is asked for', await page.isHidden('#job'));
  trouble.length = 0; // The browser itself says that it was refused.
  await page.keyboard.type('0'.repeat(64));
  await page.keyboard.press('Enter');
  await shows('#refused', 'opens nothing here');
  check('a foreign token is refused in one sentence', true);
  trouble.length = 0;
  await page.keyboard.type(metrics);
  await page.keyboard.press('Enter');
  await page.waitForSelector('#none:not([hidden])');
  check('with the metrics token, typed with the keyboard alone, it is live', (await text('#connection')) === 'live');

  node('a');
  await shows('#message', 'waiting for 1 more');
  check('a job that waits says for whom', true);
  node('b');
  await until(() => page.$$eval('#ranks button.running', (cells) => cells.length === 8), 'eight ranks that run');
  check('eight ranks run on two nodes', (await page.$$('#ranks .node')).length === 2);
  check('as long as nobody tells of steps, none are shown', await page.isHidden('#steps'));
  fs.writeFileSync(inScratch('fail'), '');
  await shows('#rounds', 'exited with code 7');
  await until(() => page.$$eval('#ranks button.running', (cells) => cells.length === 8), 'ranks that run again');
  check('the failure is named with rank and exit code', /rank 5 on host \S+ exited with code 7 \(restart 1 of 2\)/.test(await text('#rounds')), await text('#rounds'));
  check('the restart is counted', (await text('#facts')).includes('1 of 2'));
  await until(() => page.$$eval('#steps tbody tr', (rows) => rows.length === 8), 'eight ranks that tell of their steps');
  await until(() => page.$$eval('#steps tr.straggler', (rows) => rows.length === 1), 'a straggler');
  check('the straggler is named with the part of the step that is slow', /^6.*% slower, most in data, for .*data 40 ms/.test(await text('#steps tr.straggler')), await text('#steps tr.straggler'));
  check('and marked among the ranks', (await text('#ranks button.straggler')) === '6');
  check('loss and samples per second are told', /LOSS[\d.]+SAMPLES\/S5120STRAGGLERS1/.test(await text('#facts')), await text('#facts'));
  const step = () => text('#steps tbody td:nth-of-type(2)');
  const before = Number(await step());
  await until(async () => Number(await step()) > before + 20, 'later steps');
  check('the steps go on while nothing else changes', true);
  check('a rank that has failed before is marked', (await text('#ranks button.failed')) === '5');
  check('since when its ranks run is said of each node', /^running for [\d.]+ m?s$/.test(await text('#ranks .node small')), await text('#ranks .node small'));
  await page.focus('#ranks button >> nth=5');
  await shows('#who', 'was the first to fail in round 0');
  check('a rank that is chosen says all about it', /^rank 5 on \S+, local rank 1: running for .*; step \d+; beat .* ago; was the first to fail in round 0$/
    .test(await text('#who')), await text('#who'));
  await page.evaluate(() => document.activeElement.blur());
  if (flags.includes('--screenshots')) await page.screenshot({path: 'docs/observing/page.png', fullPage: true});
  await page.click('#ranks button >> nth=5');
  await shows('#told', 'this token');
  check('what it prints takes more than the metrics token', (await text('#told')).includes('this token gives access to jobs but not'), await text('#told'));
  await checkAccess(page, 'by day');
  await checkCells(page, 'by day');

  check('as long as no rank is in trouble, none is shown', await page.isHidden('#wrong'));
  const stopped = Number(fs.readFileSync(inScratch('pid') + '3', 'utf8'));
  process.kill(stopped, 'SIGSTOP');
  await shows('#wrong', 'was stopped by SIGSTOP');
  check('a rank that is stopped is named with its host', /^3\S+?[\d.]+ m?s agowas stopped by SIGSTOP$/.test(await text('#wrong tbody tr')), await text('#wrong'));
  check('and marked among the ranks', (await text('#ranks button.trouble')) === '3');
  process.kill(stopped, 'SIGCONT');
  await page.waitForSelector('#wrong', {state: 'hidden'});
  check('until it is continued', (await page.$$('#ranks button.trouble')).length === 0);

  await page.click('h1');
  await page.keyboard.press('Tab');
  check('the keyboard reaches the jobs', (await page.evaluate(() => document.activeElement.dataset.job || '')) !== '');
  await page.keyboard.press('Enter');
  check('and chooses one, which the address names', (await page.evaluate(() => location.hash)).startsWith('#job='));

  await page.keyboard.press('Tab');
  await page.keyboard.press('Home');
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('ArrowDown');
  check('arrow keys go through the ranks', (await page.evaluate(() => document.activeElement.dataset.rank)) === '5', await text('#who'));
  await checkOutput(browser, `http://127.0.0.1:${http}/`, fs.readFileSync(token, 'utf8').trim());

  await page.setViewportSize({width: 360, height: 740});
  await page.emulateMedia({colorScheme: 'dark'});
  const [wide, ground] = await page.evaluate(() => [document.documentElement.scrollWidth, getComputedStyle(document.body).backgroundColor]);
  check('on a phone nothing is beside the screen', wide <= 360, wide);
  check('in the dark it is dark', ground === 'rgb(13, 17, 23)', ground);
  await checkAccess(page, 'on a phone in the dark');
  await checkCells(page, 'in the dark');
  if (flags.includes('--screenshots')) await page.screenshot({path: 'docs/observing/page_phone.png'});
  await page.setViewportSize({width: 1100, height: 760});

  const child = execFileSync('ps', ['--ppid', String(daemon.pid), '-o', 'pid='], {encoding: 'utf8'}).trim();
  process.kill(Number(child), 'SIGKILL');
  await until(() => page.textContent('#connection').then((said) => said !== 'live'), 'a connection that is gone');
  await shows('#connection', 'live');
  await until(() => page.$$eval('#ranks button.running', (cells) => cells.length === 8), 'ranks after the daemon was started again');
  check('it comes back by itself when the daemon has been killed', true);
  check('and knows what was before', (await text('#rounds')).includes('exited with code 7'));
  trouble.length = 0; // The browser says that it had no connection.

  fs.writeFileSync(inScratch('end'), '');
  await shows('#facts', 'succeeded');
  check('the job ends on screen', (await text('#message')).includes("job 'big' succeeded: 8 workers on 2 nodes"), await text('#message'));
  failing();
  await page.waitForSelector('[data-job=small].worker_failed');
  await page.click('[data-job=small]');
  await page.waitForSelector('#failure:not([hidden])');
  check('a job that has failed says why when it is chosen', (await text('#failure-facts')).includes('exited with code 3') &&
    (await text('#failure-text')).includes('no such layer: <b>fc7</b>'), await text('#failure'));
  // "The page says that a round runs which has failed, and that its ranks ran for 2 % of the time, an hour later."
  check('of a job that has ended no round runs', (await text('#rounds')).includes('the job failed'),
    await text('#rounds'));
  const facts = await page.evaluate(() => [0, 3600e3].map((later) => {
    received -= later;
    draw();
    return document.getElementById('facts').textContent.replace(/ENDED.* ago/, '');
  }));
  check('and its age and goodput stand still', facts[0] === facts[1], facts.join(', '));
  if (flags.includes('--screenshots')) await page.screenshot({path: 'docs/observing/page_failed.png'});
  await checkAccess(page, 'where a job has failed');
  check('nothing was asked of another host', foreign.length === 0, foreign.join(', '));
  check('the browser has nothing to complain of', trouble.length === 0, trouble.join('; '));
  await page.close();
  await checkReplay(context, ['a', 'b'].map((name) => inScratch('events-' + name)));
  await browser.close();
}

// What a rank prints, and printed before the restart, for who has the token that the job was started with; on a phone,
// where there is nothing but a finger.
async function checkOutput(browser, address, token) {
  const context = await browser.newContext({viewport: {width: 360, height: 740}, hasTouch: true, isMobile: true});
  const page = await context.newPage();
  await page.goto(address);
  await page.waitForSelector('#ask:not([hidden])');
  await page.fill('#token', token);
  await page.tap('#ask button');
  await page.waitForSelector('#ranks button.running');
  const size = await page.$eval('#ranks button', (cell) => [cell.offsetWidth, cell.offsetHeight]);
  check('a finger finds a rank', size.every((pixels) => pixels >= 40), size);
  await page.tap('#ranks button >> nth=5');
  await until(async () => (await page.textContent('#output')).includes('rank 5 tries for the 1. time'), 'what rank 5 prints');
  check('what a rank prints is shown where it is tapped', (await page.textContent('#told')).startsWith('rank 5 in round 1'), await page.textContent('#told'));
  await page.fill('#round', '0');
  await page.tap('#logs button');
  await until(async () => (await page.textContent('#output')).includes('rank 5 tries for the 0. time'), 'what rank 5 printed before');
  check('also what it printed before the restart', (await page.textContent('#told')).startsWith('rank 5 in round 0'), await page.textContent('#told'));
  await context.close();
}

// What `muster replay` makes of the logs of the job that was just on screen: a page that needs nobody, and a trace.
async function checkReplay(context, logs) {
  const keep = flags.find((flag) => flag.startsWith('--keep-logs='));
  if (keep) for (const log of logs) fs.copyFileSync(log, path.join(keep.slice('--keep-logs='.length), path.basename(log)));
  const [html, trace] = [inScratch('replay.html'), inScratch('trace.json')];
  execFileSync(muster, ['replay', `--html=${html}`, `--trace=${trace}`, ...logs]);
  const page = await context.newPage();
  const trouble = [];
  page.on('console', (message) => trouble.push(message.text()));
  page.on('pageerror', (error) => trouble.push(String(error)));
  page.on('request', (request) => { if (request.url() !== 'file://' + html) trouble.push('asked for ' + request.url()); });
  await page.goto('file://' + html);
  const text = (selector) => page.textContent(selector);
  check('a replay names the failure with rank and exit code', /rank 5 on host \S+ exited with code 7/.test(await text('main')));
  await page.focus('button.round >> nth=0');
  check('its first round shows the rank that failed', (await page.$$('#grid .failed')).length === 1 &&
    (await text('#grid .failed')) === '5', await text('#grid'));
  await page.keyboard.press('ArrowDown');
  check('an arrow key goes to the next, in which all succeeded', (await text('#which')) === 'Round 1' &&
    (await page.$$('#grid .succeeded')).length === 8, await text('#grid'));
  await page.focus('#grid button');
  await page.keyboard.press('End');
  check('the keys go from rank to rank', (await text('#detail')).startsWith('rank 7 on '), await text('#detail'));
  if (flags.includes('--screenshots')) await page.screenshot({path: 'docs/observing/replay.png'});
  await checkAccess(page, 'in a replay');
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({colorScheme});
    await checkCells(page, 'in a replay, ' + colorScheme);
  }
  check('the browser has nothing to complain of there', trouble.length === 0, trouble.join('; '));
  await page.close();
  const events = JSON.parse(fs.readFileSync(trace, 'utf8')).traceEvents;
  const open = new Map();
  const wrong = events.filter((event) => {
    const line = event.pid + '/' + event.tid;
    if (event.ph === 'B') open.set(line, (open.get(line) || 0) + 1);
    if (event.ph === 'E') open.set(line, (open.get(line) || 0) - 1);
    return !event.ph || event.pid === undefined || (event.ph !== 'M' && !(event.ts >= 0)) || (event.ph === 'X' && !(event.dur >= 0)) ||
      (open.get(line) || 0) < 0;
  });
  check('the trace has only events that its format knows, and none is left open', wrong.length === 0 &&
    [...open.values()].every((count) => count === 0), JSON.stringify(wrong.slice(0, 2)));
  const viewer = flags.find((flag) => flag.startsWith('--trace2html='));
  if (viewer) await checkTrace(context, viewer.slice('--trace2html='.length), trace);
}

// What Chromium's trace viewer, which knows the format, makes of the trace.
async function checkTrace(context, trace2html, trace) {
  const html = inScratch('viewer.html');
  execFileSync('python3', [trace2html, trace, '--output', html]);
  const page = await context.newPage();
  await page.goto('file://' + html);
  const model = await page.waitForFunction(() => {
    const view = document.querySelector('tr-ui-timeline-view');
    if (!view || !view.model) return null;
    const slices = (thread) => thread.sliceGroup.slices.map((slice) => slice.title);
    return {
      warnings: view.model.importWarnings.map((warning) => warning.message),
      processes: view.model.getAllProcesses().map((process) =>
        ({name: process.name, threads: Object.values(process.threads).map((thread) => ({name: thread.name, slices: slices(thread)}))})),
    };
  }, undefined, {timeout: 60000}).then((handle) => handle.jsonValue());
  check("Chromium's trace viewer reads it without a warning", model.warnings.length === 0, model.warnings.join('; '));
  const threads = (name) => model.processes.flatMap((process) => process.threads).filter((thread) => thread.name === name);
  check('and shows the job with its rounds and the cost of its restart by phase', model.processes.some((process) => process.name === 'job big') &&
    threads('rounds').some((thread) => thread.slices.join() === 'round 0,round 1') &&
    threads('restarts').some((thread) => ['restart 0 to 1', 'stopping', 'gathering', 'starting'].every((name) => thread.slices.includes(name))),
    JSON.stringify(model.processes[0]));
  check('and each rank', [...Array(8).keys()].every((rank) => threads('rank ' + rank).length === 1));
  await page.close();
}

main().catch((error) => check('to the end', false, error.stack)).finally(() => {
  for (const child of children) child.kill('SIGTERM');
  fs.rmSync(scratch, {recursive: true, force: true});
  process.exitCode = failed ? 1 : 0;
});
