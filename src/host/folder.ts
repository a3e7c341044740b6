// The folder of what is kept for the next process: where it is, and whether it may be used. What lies there
// is run as code, so it must belong to the user alone. start.ts reads it before the package is loaded, so
// this file imports nothing.

type LoadModule = (name: string) => unknown;

/** `setting` is the setting CACHE; undefined: nothing is kept. */
export function folderOf(load: LoadModule, kind: string, setting: string): string | undefined {
  if (setting === "0") return undefined;
  const path = load("node:path") as typeof import("node:path");
  if (setting !== "") return path.join(setting, kind);
  const home = homeFolder(load);
  return home === undefined ? undefined : path.join(home, ".cache", "gradloom", kind);
}
/** undefined: there is no HOME and the system does not know the user, or HOME is empty. */
export function homeFolder(load: LoadModule): string | undefined {
  try {
    const folder = (load("node:os") as typeof import("node:os")).homedir();
    return (load("node:path") as typeof import("node:path")).isAbsolute(folder) ? folder : undefined;
  } catch {
    return undefined;
  }
}

/** Where files have owners: this user's, and nobody else may write. */
export const isPrivate = ({ uid, mode }: { readonly uid: number; readonly mode: number }): boolean =>
  process.getuid === undefined || (uid === process.getuid() && (mode & 0o022) === 0);

/**
 * Where files have owners: the folder, and the one that holds all of them, must be this user's alone.
 * undefined if they are, or a reason. Throws if there is no such folder.
 */
export function whyUnsafe(load: LoadModule, folder: string): string | undefined {
  const user = process.getuid?.();
  if (user === undefined) return undefined;
  const fs = load("node:fs") as typeof import("node:fs");
  const path = load("node:path") as typeof import("node:path");
  for (const each of [folder, path.dirname(folder)]) {
    const facts = fs.statSync(each);
    if (isPrivate(facts)) continue;
    const { uid, mode } = facts;
    const why =
      uid === user
        ? `others may write to it (mode ${(mode & 0o777).toString(8)}); run: chmod go-w ${JSON.stringify(each)}`
        : `it belongs to user ${uid}, not to user ${user}; set CACHE to a folder of your own, or to 0`;
    return `${each}: ${why}`;
  }
  return undefined;
}
