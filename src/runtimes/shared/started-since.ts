/** Somebody has started a pod again since its end: what runs it is not to be told of that end any more. */
export class StartedSince extends Error {
  override readonly name = 'StartedSince';
}
