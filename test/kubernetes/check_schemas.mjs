// Whether Kubernetes would take a manifest: against its published schemas, which are in the package kubernetes-models as
// compiled validators, and, as `kubectl create` does, without a field that its API does not know, which
// @kubernetes/client-node lists.
//   node check_schemas.mjs PACKAGES FILE...     PACKAGES: the folder in which `npm install` has put them
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const [packages, ...files] = process.argv.slice(2);
const require = createRequire(resolve(packages, 'package.json'));
const { parseAllDocuments } = require('yaml');
const models = await import(
  pathToFileURL(resolve(packages, 'node_modules/@kubernetes/client-node/dist/gen/models/all.js')).href);

// What type names say: V1Pod, Array<V1Pod>, { [key: string]: V1Pod; }.
function* unknownFields(value, type, path) {
  const inner = type.match(/^Array<(.*)>$/) ?? type.match(/^\{ \[key: string\]: (.*); \}$/);
  if (inner) {
    for (const [key, member] of Object.entries(value ?? {})) yield* unknownFields(member, inner[1], `${path}/${key}`);
    return;
  }
  if (!(type in models) || value === null || typeof value !== 'object') return;
  const fields = new Map(models[type].getAttributeTypeMap().map((field) => [field.baseName, field.type]));
  for (const [key, member] of Object.entries(value)) {
    if (!fields.has(key)) yield `${path}/${key} is no field of ${type}`;
    else yield* unknownFields(member, fields.get(key), `${path}/${key}`);
  }
}

function* mistakes(manifest) {
  const { apiVersion, kind } = manifest;
  const model = require(`kubernetes-models/${apiVersion}/${kind}`)[kind];
  try {
    new model(manifest).validate();
  } catch (error) {
    yield error.message;
  }
  yield* unknownFields(manifest, `V1${kind}`, kind);
}

let wrong = 0;
let seen = 0;
for (const file of files) {
  for (const document of parseAllDocuments(readFileSync(file, 'utf8'), { version: '1.1' })) {
    if (document.errors.length > 0) {
      console.log(`${file}: ${document.errors[0].message}`);
      wrong += 1;
      continue;
    }
    seen += 1;
    for (const mistake of mistakes(document.toJS())) {
      console.log(`${file}: ${mistake}`);
      wrong += 1;
    }
  }
}
if (seen === 0) wrong += 1;
console.log(`${seen} objects, ${wrong} mistakes`);
process.exit(wrong === 0 ? 0 : 1);
