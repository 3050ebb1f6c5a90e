// Sends signal 0 to the process named on the command line and prints what the call reported.
import { addon } from './common.mjs';

try {
  addon.openPidfd(Number(process.argv[2])).signal(0);
  console.log('null');
} catch (error) {
  const { code, errno, syscall } = error;
  console.log(JSON.stringify({ code, errno, syscall }));
}
