// npm run accept: the same tests with the full counts of the acceptance lines. Prints one line
// `accept: STATE: TEST: FIGURES` for each test of the kernel suite and each other that measures, as it
// ends, and for each planted fault (scripts/faults.mjs); last `N passed, N failed, N skipped`. Arguments
// go to vitest, as with `npm test`; the faults are then left out. Bounded by scripts/test.mjs.
process.env.EVICTD_COUNTS = 'full';
await import('./test.mjs');
