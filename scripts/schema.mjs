// Writes docs/schema/: evictd.dev_v1alpha1.json from the table of options, and that of scenarios; after
// `npm run build`.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { configurationSchema } from '../dist/config/schema.js';
import { SCENARIO_SCHEMA } from '../dist/simulation/schema.js';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const directory = path.join(root, 'docs/schema');
mkdirSync(directory, { recursive: true });
const schemas = {
  'evictd.dev_v1alpha1.json': configurationSchema(),
  'evictd.dev_scenario_v1alpha1.json': SCENARIO_SCHEMA,
};
for (const [name, schema] of Object.entries(schemas)) {
  writeFileSync(path.join(directory, name), `${JSON.stringify(schema, null, 2)}\n`);
}
