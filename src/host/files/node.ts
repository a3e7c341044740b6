// Files in Node. The contract is in ../contract.ts. Loaded by code that reads or writes files.

import { FileError } from "../../errors.ts";
import { builtin, load } from "../builtin.ts";

export function writeText(path: string, text: string): void {
  try {
    builtin.fs.writeFileSync(path, text);
  } catch (cause) {
    throw new FileError(`cannot write ${path}: ${(cause as Error).message}`, { cause });
  }
}

/** Bytes `start` to `end` of a file, all of it by default; a file that ends earlier gives fewer. */
export async function readBytes(path: string, start = 0, end?: number): Promise<Uint8Array<ArrayBuffer>> {
  try {
    const file = await builtin.files.open(path, "r");
    try {
      const stop = Math.min(end ?? Infinity, (await file.stat()).size);
      const bytes = new Uint8Array(Math.max(0, stop - start));
      for (let done = 0; done < bytes.byteLength; ) {
        const { bytesRead } = await file.read(bytes, done, bytes.byteLength - done, start + done);
        if (bytesRead === 0) return bytes.slice(0, done);
        done += bytesRead;
      }
      return bytes;
    } finally {
      await file.close();
    }
  } catch (cause) {
    throw new FileError(`cannot read ${path}: ${(cause as Error).message}`, { cause });
  }
}

export async function fileSize(path: string): Promise<number> {
  try {
    return (await builtin.files.stat(path)).size;
  } catch (cause) {
    throw new FileError(`cannot read ${path}: ${(cause as Error).message}`, { cause });
  }
}

/**
 * Writes the parts one after the other to a new file, which takes the place of the old one when it is whole:
 * if the program dies on the way, the old one stays, and whoever has it open can go on reading it.
 */
export async function writeBytes(path: string, parts: AsyncIterable<Uint8Array>): Promise<void> {
  const draft = `${path}.${process.pid}.${Date.now().toString(36)}.part`;
  try {
    const file = await builtin.files.open(draft, "wx");
    try {
      for await (const part of parts) {
        for (let done = 0; done < part.byteLength; )
          done += (await file.write(part, done, part.byteLength - done)).bytesWritten;
      }
      // without this a crash of the machine could leave the new name with no data
      await file.sync();
    } finally {
      await file.close();
    }
    await builtin.files.rename(draft, path);
  } catch (cause) {
    await builtin.files.rm(draft, { force: true });
    if ((cause as NodeJS.ErrnoException).code === undefined) throw cause;
    throw new FileError(`cannot write ${path}: ${(cause as Error).message}`, { cause });
  }
}

/** The path of a file that an installed npm package holds. */
export function packageFile(name: string, file: string): string {
  const { dirname, join } = builtin.path;
  for (const paths of [undefined, { paths: [process.cwd()] }]) {
    try {
      return join(dirname(load.resolve(`${name}/package.json`, paths)), file);
    } catch {}
  }
  throw new FileError(`the npm package ${name} is not installed; run: npm install ${name}`);
}
