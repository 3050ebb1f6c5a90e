// Writes docs/schema/evictd.dev_v1alpha1.json from the table of options; after `npm run build`.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { configurationSchema } from '../dist/config/schema.js';

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const directory = path.join(root, 'docs/schema');
mkdirSync(directory, { recursive: true });
writeFileSync(
  path.join(directory, 'evictd.dev_v1alpha1.json'),
  `${JSON.stringify(configurationSchema(), null, 2)}\n`,
);
