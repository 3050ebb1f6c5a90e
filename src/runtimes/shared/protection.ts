/** What spares a pod that has nobody to end; as soon as a process joins it, it does not any more. */
export const NO_PROCESS = 'holds no process';
