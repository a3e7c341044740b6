// Compiled kernels that a page keeps for its next visit, in IndexedDB. In: a key that says everything the
// code depends on. Out: the bytes of the module and what it takes to launch it. All of them are read at once,
// when the first is asked for; new ones are written together, a moment after the last. Where storage is
// refused (a private window, a policy, no room) nothing is kept, and no error is shown.

/** What is kept of a kernel. */
export interface KeptKernel {
  readonly name: string;
  readonly code: Uint8Array<ArrayBuffer>;
  readonly buffers: number;
  readonly vals: number;
  readonly isPart: boolean;
  readonly dynamicShared: number;
  readonly globalSize: readonly number[];
  readonly localSize: readonly number[];
  readonly globals: readonly number[];
  readonly repeats: boolean;
  readonly ops: number;
  readonly bytes: number;
}
interface Stored {
  readonly kernel: KeptKernel;
  /** the build of the package that made it */
  readonly build: string;
  readonly sum: number;
  /** when it was last used, in days */
  readonly day: number;
}

const DATABASE = "gradloom-kernels";
const STORE = "kernels";
/** A page goes on without if the database does not answer in so many milliseconds. */
const PATIENCE = 1000;
/** New kernels are written after so many milliseconds without another. */
const DELAY = 300;
/** The oldest are deleted where there are more. */
const MAX_KERNELS = 2000;
const MAX_BYTES = 16 << 20;

const today = (): number => Math.floor(Date.now() / 86_400_000);

/** FNV-1a of the module and of what is known of it. */
function checksum(key: string, { code, ...facts }: KeptKernel): number {
  let sum = 0x811c9dc5;
  const text = key + JSON.stringify(facts);
  for (let i = 0; i < text.length; i++) sum = Math.imul(sum ^ text.charCodeAt(i), 0x01000193);
  for (const byte of code) sum = Math.imul(sum ^ byte, 0x01000193);
  return sum >>> 0;
}

const answered = <T>(request: IDBRequest<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

export class KernelStore {
  readonly #db: IDBDatabase;
  readonly #build: string;
  readonly #kernels: Map<string, Stored>;
  readonly #changed = new Set<string>();
  readonly #deleted = new Set<string>();
  #timer: ReturnType<typeof setTimeout> | undefined;

  private constructor(db: IDBDatabase, build: string, kernels: Map<string, Stored>) {
    this.#db = db;
    this.#build = build;
    this.#kernels = kernels;
  }

  /** All that this build has kept; undefined where nothing can be kept. */
  static async open(build: string): Promise<KernelStore | undefined> {
    const none = new Promise<undefined>((resolve) => setTimeout(() => resolve(undefined), PATIENCE));
    return Promise.race([KernelStore.#open(build).catch(() => undefined), none]);
  }
  static async #open(build: string): Promise<KernelStore> {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => void request.result.createObjectStore(STORE);
    const db = await answered(request);
    db.onversionchange = () => db.close();
    const all = db.transaction(STORE).objectStore(STORE);
    const [keys, values] = await Promise.all([answered(all.getAllKeys()), answered(all.getAll())]);
    const store = new KernelStore(db, build, new Map());
    keys.forEach((key, i) => {
      const stored = values[i] as Stored | undefined;
      if (stored?.build === build) store.#kernels.set(String(key), stored);
      else store.#deleted.add(String(key)); // of another version: it would never be asked for again
    });
    if (store.#deleted.size > 0) store.#writeSoon();
    return store;
  }

  /** undefined: it is not there, or damaged. */
  recall(key: string): KeptKernel | undefined {
    const stored = this.#kernels.get(key);
    if (stored === undefined) return undefined;
    if (!isWhole(key, stored)) {
      this.#kernels.delete(key);
      return undefined;
    }
    if (stored.day !== today()) {
      this.#kernels.set(key, { ...stored, day: today() });
      this.#changed.add(key);
      this.#writeSoon();
    }
    return stored.kernel;
  }

  keep(key: string, kernel: KeptKernel): void {
    const stored = { kernel, build: this.#build, sum: checksum(key, kernel), day: today() };
    this.#kernels.set(key, stored);
    this.#changed.add(key);
    this.#deleted.delete(key);
    this.#writeSoon();
  }

  #writeSoon(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      try {
        this.#write();
      } catch {} // the database was closed, or there is no room
    }, DELAY);
  }
  #write(): void {
    this.#evict();
    const transaction = this.#db.transaction(STORE, "readwrite");
    const store = transaction.objectStore(STORE);
    for (const key of this.#deleted) store.delete(key);
    for (const key of this.#changed) {
      const stored = this.#kernels.get(key);
      if (stored !== undefined) store.put(stored, key);
    }
    this.#deleted.clear();
    this.#changed.clear();
  }
  /** Those that were not used for longest go first; of one day, those that came first. */
  #evict(): void {
    let bytes = 0;
    for (const [key, { kernel }] of this.#kernels) bytes += 2 * key.length + kernel.code.byteLength;
    const oldest = [...this.#kernels].sort(([, a], [, b]) => a.day - b.day);
    for (const [key, { kernel }] of oldest) {
      if (bytes <= MAX_BYTES && this.#kernels.size <= MAX_KERNELS) break;
      bytes -= 2 * key.length + kernel.code.byteLength;
      this.#kernels.delete(key);
      this.#deleted.add(key);
    }
  }
}

function isWhole(key: string, { kernel, sum }: Stored): boolean {
  return ArrayBuffer.isView(kernel?.code) && checksum(key, kernel) === sum;
}
