/**
 * The import rules of src/, one table and one rule for each thing that is protected. Each comment
 * says what to do instead. `test/boundaries.test.ts` has a wrong import for every rule, since the
 * tool reports success where it could not parse anything.
 *
 * Built-ins are matched without the `node:` prefix. Type imports count (`tsPreCompilationDeps`).
 */

const BUILTIN = 'core'; // dependency-cruiser's own name for a module of Node

/**
 * What a folder of src/ may import beside itself. `builtins` is a pattern of Node's modules, or
 * `any`; `fs`, `child_process` and `module` have rules of their own on top. Core, ports and native
 * are below the edges and have rules of their own; daemon.ts, commands/, main.ts and index.ts are
 * above them and may import everything below.
 */
const EDGES = {
  config: { folders: ['core'], builtins: '^(fs|fs/promises|path)$' },
  simulation: { folders: ['core', 'config'], builtins: '^$' },
  kernel: { folders: ['core', 'ports'], builtins: '^fs$' },
  sources: { folders: ['core', 'ports', 'native', 'kernel'], builtins: 'any' },
  runtimes: { folders: ['core', 'ports', 'native', 'kernel'], builtins: 'any' },
  actions: { folders: ['core', 'ports'], builtins: '^$' },
  state: { folders: ['core', 'ports'], builtins: '^(crypto|path)$' },
  surfaces: { folders: ['core', 'ports', 'config'], builtins: 'any' },
};

/** The one place of each third-party package, by its decision record; rxjs is allowed anywhere. */
const PACKAGES = {
  '@grpc/grpc-js': '^src/runtimes/cri/',
  '@grpc/proto-loader': '^src/runtimes/cri/',
  ajv: '^src/simulation/',
  dockerode: '^src/runtimes/docker/',
  commander: '^src/(commands/|main\\.ts$)',
  pino: '^src/surfaces/',
  'pino-pretty': '^src/surfaces/',
  'sonic-boom': '^src/surfaces/',
  yaml: '^src/config/',
};

const ROOT = '^src/(commands/|daemon/|daemon\\.ts$|main\\.ts$|index\\.ts$)';
const RXJS = 'node_modules/rxjs/';

/**
 * Folders whose own rule lists all that they may import: the rules for single modules leave them
 * out, so that a wrong import is reported once.
 */
const LISTED = '^src/(core|ports|native)/';

/** Every rule is an error: a warning would only be read once. */
const forbid = (name, comment, from, to) => ({ name, comment, severity: 'error', from, to });

const packagePattern = (name) => `node_modules/${name}/`;

const edgeRules = Object.entries(EDGES).flatMap(([folder, { folders, builtins }]) => {
  const comment =
    `${folder} may import ${folders.join(', ')} and itself. Pass what another edge provides as an ` +
    'argument, typed in src/ports/, and join the two in src/daemon.ts.';
  const from = { path: `^src/${folder}/` };
  const above = ROOT.replace('^src/', '');
  return [
    forbid('edges-do-not-meet', comment, from, {
      path: '^src/',
      pathNot: `^src/(${[folder, ...folders].join('|')})/|^src/${above}`,
    }),
    ...(builtins === 'any'
      ? []
      : [
          forbid('edges-do-not-meet', comment, from, {
            dependencyTypes: [BUILTIN],
            pathNot: [builtins, '^(fs|fs/promises|child_process|cluster|module)$'],
          }),
        ]),
  ];
});

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    forbid(
      'core-is-pure',
      'The core imports itself and rxjs. Take what you need as a value in the sample or the policy, ' +
        'or return what should be done as data, and let a source or an action do it.',
      { path: '^src/core/' },
      { pathNot: ['^src/core/', RXJS] },
    ),
    forbid(
      'ports-are-types',
      'Ports say what the edges provide, in terms of the core and rxjs. Move an implementation to ' +
        'its edge, and what both need to src/core/.',
      { path: '^src/ports/' },
      { pathNot: ['^src/(ports|core)/', RXJS] },
    ),
    forbid(
      'ports-are-types',
      'Ports hold types alone: write `import type`, and move values to src/core/.',
      { path: '^src/ports/' },
      { path: ['^src/', RXJS], dependencyTypesNot: ['type-only'] },
    ),
    forbid(
      'ports-are-types',
      'A port has no value to import: write `import type`, or move the value to src/core/.',
      { path: '^src/', pathNot: '^src/ports/' },
      { path: '^src/ports/', dependencyTypesNot: ['type-only'] },
    ),
    ...edgeRules,
    forbid(
      'runtimes-stand-alone',
      'A runtime knows no other, and shared/ knows none. Move what two of them need to ' +
        'src/runtimes/shared/.',
      { path: '^src/runtimes/([^/]+)/' },
      { path: '^src/runtimes/', pathNot: '^src/runtimes/($1|shared)/' },
    ),
    forbid(
      'nothing-imports-the-root',
      'daemon.ts joins the edges; commands/, main.ts and index.ts stand on top of it. Take the ' +
        'value as an argument, or move what is shared below daemon.ts.',
      { path: '^src/', pathNot: ROOT },
      { path: ROOT },
    ),
    forbid(
      'nothing-imports-the-root',
      'daemon.ts knows neither commands/ nor the entry points above it. Move what is shared below it.',
      { path: '^src/daemon(\\.ts$|/)' },
      { path: '^src/(commands/|main\\.ts$|index\\.ts$)' },
    ),
    forbid(
      'nothing-imports-the-root',
      'main.ts and index.ts are entry points: nothing imports them. Move what is shared below them.',
      { path: '^src/(commands/|main\\.ts$|index\\.ts$)' },
      { path: '^src/(main|index)\\.ts$' },
    ),
    forbid(
      'library-is-the-policy',
      'index.ts exports core, config, simulation and native: whoever imports the library starts no daemon ' +
        'and loads no logger. Move what it needs there.',
      { path: '^src/index\\.ts$' },
      { path: '^src/', pathNot: '^src/(core|config|simulation|native)/' },
    ),
    forbid(
      'native-is-loaded-once',
      'Outside of src/native/ only index.ts (the loaded addon) and types.ts (its description) are ' +
        'to be imported: a second loader would be a second place that can fail.',
      { path: '^src/', pathNot: '^src/native/' },
      { path: '^src/native/', pathNot: '^src/native/(index|types)\\.ts$' },
    ),
    forbid(
      'native-is-loaded-once',
      'Only src/native/index.ts touches the compiled addon. Import that.',
      { path: '^src/', pathNot: '^src/native/index\\.ts$' },
      { path: '\\.node$|^build/' },
    ),
    forbid(
      'native-is-a-leaf',
      'The addon knows descriptors, not eviction: src/native/ imports itself and node:module. ' +
        'Put what combines both into a source or a runtime.',
      { path: '^src/native/' },
      { pathNot: ['^src/native/', '^(module|path|url)$', '\\.node$'] },
    ),
    forbid(
      'only-native-makes-require',
      'createRequire hides an import from these rules. Import the module, or have ' +
        'src/native/index.ts load it.',
      { path: '^src/', pathNot: '^src/native/index\\.ts$' },
      { path: '^module$' },
    ),
    forbid(
      'fs-only-at-the-edge',
      'Read files in config/, kernel/, sources/, runtimes/, state/, surfaces/, commands/ or daemon.ts and ' +
        'pass on what was read.',
      {
        path: '^src/',
        pathNot: [
          LISTED,
          '^src/(config|kernel|sources|runtimes|state|surfaces|commands)/',
          '^src/daemon(\\.ts$|/)',
        ],
      },
      { path: '^fs(/promises)?$' },
    ),
    forbid(
      'child-process-where-named',
      'Only `evictd demo` and the helpers of sources/ start processes. Read the kernel files yourself, ' +
        'or name the place here with the reason in a decision record.',
      {
        path: '^src/',
        pathNot: [LISTED, '^src/commands/demo(/|[^/]*\\.ts$)', '^src/sources/helper-process\\.ts$'],
      },
      { path: '^(child_process|cluster)$' },
    ),
    ...Object.entries(PACKAGES).map(([name, place]) =>
      forbid(
        'packages-where-named',
        `${name} is imported in ${place} alone. Have that place do the work.`,
        { path: '^src/', pathNot: [LISTED, place] },
        { path: packagePattern(name), dependencyTypesNot: ['npm-dev'] },
      ),
    ),
    forbid(
      'packages-where-named',
      'A package is imported where its decision record names it: add the record and a row in ' +
        'PACKAGES first. node-addon-api and node-gyp only build the addon.',
      { path: '^src/', pathNot: LISTED },
      {
        path: 'node_modules/',
        pathNot: [RXJS, ...Object.keys(PACKAGES).map(packagePattern)],
        dependencyTypesNot: ['npm-dev'],
      },
    ),
    forbid(
      'no-circular',
      'Modules that import each other are one module. Move what both need into a third.',
      { path: '^src/' },
      { circular: true },
    ),
    forbid(
      'not-to-dev-dep',
      'An installed evictd has no development dependencies. Move the package to `dependencies`, ' +
        'with a decision record, or do without.',
      { path: '^src/', pathNot: LISTED },
      { dependencyTypes: ['npm-dev'] },
    ),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: new URL('tsconfig.json', import.meta.url).pathname },
    enhancedResolveOptions: {
      conditionNames: ['node', 'import', 'types', 'default'],
      exportsFields: ['exports'],
    },
  },
};
