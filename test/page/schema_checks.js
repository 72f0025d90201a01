// That docs/observing/openapi.json is an OpenAPI document, and that lines of event logs are what docs/event_log.schema.json
// says, to programs that know OpenAPI and JSON Schema and nothing of Muster.
'use strict';

const fs = require('fs');
const Ajv = require('ajv/dist/2020');
const addFormats = require('ajv-formats');

const [api, schema, ...logs] = process.argv.slice(2);
let failed = 0;

function check(what, holds, seen) {
  console.log((holds ? 'ok      ' : 'FAILED  ') + what + (holds ? '' : ': ' + seen));
  if (!holds) ++failed;
}

async function main() {
  // It is a module, which NODE_PATH does not find for import.
  const {Validator} = await import(require.resolve('@seriousme/openapi-schema-validator'));
  const answer = await new Validator().validate(JSON.parse(fs.readFileSync(api, 'utf8')));
  check(api + ' is an OpenAPI document', answer.valid, JSON.stringify(answer.errors));
  const ajv = new Ajv({strict: true});
  addFormats(ajv);
  const fits = ajv.compile(JSON.parse(fs.readFileSync(schema, 'utf8')));
  let lines = 0;
  for (const log of logs) {
    for (const line of fs.readFileSync(log, 'utf8').trim().split('\n')) {
      ++lines;
      if (!fits(JSON.parse(line))) check(log + ' fits ' + schema, false, line + ' ' + JSON.stringify(fits.errors));
    }
  }
  check(`${lines} lines of ${logs.length} event logs fit ${schema}`, lines > 20, lines);
  check('what is no event does not', !fits({event: 'danced', time: 'now'}));
}

main().catch((error) => check('to the end', false, error.stack)).finally(() => { process.exitCode = failed ? 1 : 0; });
