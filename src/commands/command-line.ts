import { isatty } from 'node:tty';
import { Command, CommanderError, Option as CommanderOption, type Help } from 'commander';
import {
  conditionsFromFlags,
  type FlagValues,
  isSwitchedOn,
  socketPathFromFlags,
} from '../config/flags.ts';
import { settingsLoader } from '../config/loader.ts';
import {
  COMMANDS,
  type CommandName,
  isCommand,
  type Option,
  optionsOf,
  optionTerm,
} from '../config/options.ts';
import { assert, EvictdError, escapeControl } from '../core/errors.ts';
import { tuneEngine } from './engine.ts';
import { loadAgain, noteHangups } from './reload.ts';

const STANDARD_OUTPUT = 1;

/** What a command line asks for. */
export type Invocation =
  | {
      readonly command: CommandName;
      readonly values: FlagValues;
      /** The files that are a command's arguments; left out for commands that take none. */
      readonly files?: readonly string[];
    }
  | { readonly command: 'help'; readonly text: string };

/** Checks a command's flags, imports its module, so that no other pays for it, and runs it. */
const EXECUTORS: Record<
  CommandName,
  (values: FlagValues, files: readonly string[]) => Promise<number>
> = {
  run: async (values) => {
    // A terminal that is gone is no wish for other settings.
    const tellHangups = isatty(STANDARD_OUTPUT) ? undefined : noteHangups();
    const load = await settingsLoader(values);
    const checked = load();
    tuneEngine();
    const { runCommand } = await import('./run.ts');
    return runCommand(checked, { tellHangups, loadAgain: () => loadAgain(values) });
  },
  'check-config': async (values) => {
    const { checkConfigCommand } = await import('./check-config.ts');
    return checkConfigCommand(values);
  },
  simulate: async (values, files) => {
    const { simulateCommand } = await import('./simulate.ts');
    return simulateCommand(values, files);
  },
  demo: async (values) => {
    const plain = isSwitchedOn(values, '--plain');
    const { demoCommand } = await import('./demo.ts');
    return demoCommand({ plain });
  },
  status: async (values) => {
    const socketPath = socketPathFromFlags(values);
    const json = isSwitchedOn(values, '--json');
    const { statusCommand } = await import('./status.ts');
    return statusCommand({ socketPath, json });
  },
  summary: async (values) => {
    const socketPath = socketPathFromFlags(values);
    const scenario = isSwitchedOn(values, '--scenario');
    const { summaryCommand } = await import('./summary.ts');
    return summaryCommand({ socketPath, scenario });
  },
  record: async (values) => {
    const { recordCommand } = await import('./record.ts');
    return recordCommand(values);
  },
  admit: async (values, [file = '']) => {
    const conditions = conditionsFromFlags(values);
    const json = isSwitchedOn(values, '--json');
    const socketPath = conditions === undefined ? socketPathFromFlags(values) : undefined;
    const { admitCommand, askConditions } = await import('./admit.ts');
    return admitCommand({
      file,
      json,
      conditions: async () =>
        socketPath === undefined ? (conditions ?? []) : askConditions(socketPath),
    });
  },
  gc: async (values) => {
    const { gcCommand } = await import('./gc.ts');
    return gcCommand(values);
  },
  version: async () => {
    const { versionCommand } = await import('./version.ts');
    return versionCommand();
  },
};

/** Items with a longer term have their description on the lines below it. */
const MAX_TERM_WIDTH = 24;

const HELP_WIDTH = 80;

const HELP: Partial<Help> = {
  formatItem: (term, termWidth, description, helper) => {
    const beside = termWidth <= MAX_TERM_WIDTH;
    const indent = ' '.repeat(beside ? termWidth + 4 : 6);
    const lines = helper.boxWrap(description, HELP_WIDTH - indent.length).replace(/^/gm, indent);
    return beside ? `  ${term.padEnd(termWidth)}  ${lines.trimStart()}` : `  ${term}\n${lines}`;
  },
};

/** Help that writes a command's options as the table of options does. */
function helpOf(options: readonly Option[]): Partial<Help> {
  return {
    ...HELP,
    optionTerm: ({ flags, long }) => {
      const option = options.find(({ name }) => name === long);
      return option === undefined ? flags : optionTerm(option);
    },
  };
}

/**
 * Carries out what was asked for; resolves to the exit status when it is done.
 *
 * @throws EvictdError what the command throws, its flags' errors first
 */
export async function execute(invocation: Invocation): Promise<number> {
  if (invocation.command === 'help') {
    process.stdout.write(invocation.text);
    return 0;
  }
  const { command, values, files = [] } = invocation;
  return EXECUTORS[command](values, files);
}

/**
 * Reads the arguments that follow the program's name. Options' values are not looked at; a
 * request for help is answered with its text.
 *
 * @throws EvictdError EVICTD_USAGE
 */
export function parseCommandLine(argv: readonly string[]): Invocation {
  if (argv.length === 1 && argv[0] === '--version') return { command: 'version', values: {} };
  let text = '';
  let invocation: Invocation | undefined;
  const program = buildProgram({
    onCommand: (parsed) => {
      invocation = parsed;
    },
    onOutput: (output) => {
      text += output;
    },
  });
  try {
    program.parse(spellOut(argv), { from: 'user' });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    if (error.exitCode !== 0) throw usageError(error);
    invocation = { command: 'help', text };
  }
  assert(invocation !== undefined, 'a command line without an error names a command');
  return invocation;
}

interface ProgramListener {
  readonly onCommand: (invocation: Exclude<Invocation, { command: 'help' }>) => void;
  readonly onOutput: (text: string) => void;
}

function buildProgram({ onCommand, onOutput }: ProgramListener): Command {
  const program = new Command('evictd')
    .description("The kubelet's eviction manager as a stand-alone daemon")
    .exitOverride()
    .configureHelp(HELP)
    // Errors are thrown as well, and printed by main.ts.
    .configureOutput({ writeOut: onOutput, writeErr: () => {} });
  for (const name of Object.keys(COMMANDS).filter(isCommand)) {
    const options = optionsOf(name);
    const command = program
      .command(name)
      .description(COMMANDS[name])
      .configureHelp(helpOf(options));
    for (const option of options) command.addOption(commanderOption(option, name));
    const operand = OPERANDS[name];
    if (operand !== undefined) command.argument(operand.term, operand.description);
    command.action((operands?: unknown) => {
      const values = givenValues(command, options);
      const takesFiles = operand !== undefined && name !== 'check-config';
      onCommand(
        takesFiles
          ? { command: name, values, files: filesOf(operands) }
          : { command: name, values: withFile(values, operands) },
      );
    });
  }
  return program;
}

/** What a command takes beside its options. */
const OPERANDS: Partial<
  Record<CommandName, { readonly term: string; readonly description: string }>
> = {
  'check-config': { term: '[FILE]', description: 'the same as --config FILE' },
  admit: { term: '<FILE>', description: 'pods as YAML or JSON; - is standard input' },
  simulate: {
    term: '[FILE...]',
    description:
      'scenarios, JSON or YAML; - for standard input. Flags of the policy take the place of what a file says',
  },
};

/** Commander gives one, or a list. */
function filesOf(operands: unknown): readonly string[] {
  return Array.isArray(operands) ? operands.map(String) : [String(operands)];
}

/**
 * To commander every option has a value, and all its values are collected. What a scenario says stands
 * in place of a default.
 */
function commanderOption(option: Option, command: CommandName): CommanderOption {
  const { name, value, description, key } = option;
  const isScenarios = command === 'simulate' && key !== undefined;
  const shown = value === undefined || option.default === undefined || isScenarios;
  return new CommanderOption(
    `${name} <VALUE>`,
    shown ? description : `${description} (default: ${option.default})`,
  ).argParser((text: string, previous: readonly string[] = []) => [...previous, text]);
}

function givenValues(command: Command, options: readonly Option[]): FlagValues {
  const given = command.opts<Record<string, readonly string[] | undefined>>();
  return Object.fromEntries(
    options.flatMap(({ name }) => {
      const values = given[new CommanderOption(name).attributeName()];
      return values === undefined ? [] : [[name, values]];
    }),
  );
}

/** The values with the file that `check-config FILE` names. */
function withFile(values: FlagValues, file: unknown): FlagValues {
  if (typeof file !== 'string') return values;
  if (values['--config'] === undefined) return { ...values, '--config': [file] };
  throw new EvictdError('EVICTD_USAGE', 'either FILE or --config FILE, not both', { value: file });
}

/**
 * Puts main names for aliases and gives bare switches their `=true`, so that commander sees
 * options with values only. As with Go's flags, a switch takes its value only after `=`, and any
 * other option takes the next argument, whatever that looks like.
 */
function spellOut(argv: readonly string[]): readonly string[] {
  const [command = '', ...rest] = argv;
  if (!isCommand(command)) return argv;
  const options = optionsOf(command);
  const spelt: string[] = [command];
  for (let argument = rest.shift(); argument !== undefined; argument = rest.shift()) {
    if (argument === '--') return [...spelt, argument, ...rest];
    const [flag, value] = splitAtEquals(argument);
    const option = options.find(
      ({ name, aliases }) => name === flag || aliases.some((alias) => alias === flag),
    );
    if (option === undefined) spelt.push(argument);
    else if (value !== undefined) spelt.push(`${option.name}=${value}`);
    else if (option.value === undefined) spelt.push(`${option.name}=true`);
    else spelt.push(option.name, ...rest.splice(0, 1));
  }
  return spelt;
}

function splitAtEquals(argument: string): [string, string | undefined] {
  const index = argument.indexOf('=');
  return index < 0 ? [argument, undefined] : [argument.slice(0, index), argument.slice(index + 1)];
}

function usageError(error: CommanderError): EvictdError {
  const message =
    error.code === 'commander.help'
      ? `expected one of the commands ${Object.keys(COMMANDS).join(', ')}`
      : error.message.replace(/^error: /, '').replaceAll('\n', ' ');
  return new EvictdError('EVICTD_USAGE', escapeControl(message));
}
