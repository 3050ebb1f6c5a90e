import { constants, openSync, readdirSync } from 'node:fs';
import { asPath, type BytePath } from './byte-path.ts';

/** Opens a directory, close-on-exec, and no link to one. Throws what open(2) gives. */
export function openDirectory(path: BytePath): number {
  return openSync(asPath(path), constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
}

/** A path to an open directory itself, whatever becomes of its name. */
export function heldPath(fd: number): BytePath {
  return `/proc/self/fd/${fd}`;
}

/** The names of the directories in a directory. Throws what open(2) and getdents(2) give. */
export function directoryNames(path: BytePath): readonly BytePath[] {
  return readdirSync(asPath(path), { withFileTypes: true, encoding: 'latin1' })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);
}
