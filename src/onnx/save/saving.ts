// Whether an export is under way: a model that is run then gives its graph and computes nothing.

let under = 0;
export const isSaving = (): boolean => under > 0;

export async function whileSaving<T>(fn: () => Promise<T>): Promise<T> {
  under++;
  try {
    return await fn();
  } finally {
    under--;
  }
}
