// What holds inside a function and nowhere else: whether gradients are recorded, whether layers train, and in
// which type products compute.
// Where the platform can tell which task runs (Node), an async function keeps its scope beyond each await. A
// page cannot tell: there a scope holds for the synchronous part of its function. While the function's
// promise is pending, whatever runs in no such part and would depend on the scope is refused.

import { makeAsyncScope } from "#host";
import type { DType } from "../dtype.ts";
import { ArgumentError } from "../errors.ts";
import { isPromise } from "../helpers.ts";
import type { AsyncScope } from "../host/contract.ts";

export interface Scope {
  readonly recording: boolean;
  /** undefined: layers train where gradients are recorded */
  readonly training: boolean | undefined;
  /** the type that operands of products are cast to; undefined: they stay as they are */
  readonly autocast: DType | undefined;
}
/** Runs `fn` in the scope again: for what an async function does after an await, in a page. */
export type Within = <T>(fn: () => T) => T;

export class Scopes {
  /** what holds where nothing else was said */
  initial: Scope = { recording: true, training: undefined, autocast: undefined };
  /** the scope of the function that is on the stack */
  #here: Scope | undefined;
  /** the scopes of async functions that are under way */
  readonly #pending = new Set<Scope>();
  readonly #tasks: AsyncScope;

  constructor(tasks: AsyncScope = makeAsyncScope()) {
    this.#tasks = tasks;
  }

  /** The scope that holds here, as far as the platform can tell. */
  get current(): Scope {
    const isTask = this.#pending.size > 0 && this.#tasks.exact;
    return this.#here ?? (isTask ? (this.#tasks.get() as Scope | undefined) : undefined) ?? this.initial;
  }
  get<K extends keyof Scope>(key: K): Scope[K] {
    const { current, initial } = this;
    if (current === initial && !this.#tasks.exact) {
      for (const scope of this.#pending) if (scope[key] !== initial[key]) throw new ArgumentError(AMBIGUOUS);
    }
    return current[key];
  }
  /** Whether layers that behave differently in training should do so. */
  get training(): boolean {
    return this.get("training") ?? this.get("recording");
  }

  /** Runs a synchronous function. */
  sync<T>(change: Partial<Scope>, fn: () => T): T {
    const before = this.#here;
    this.#here = this.#changed(change);
    try {
      return fn();
    } finally {
      this.#here = before;
    }
  }

  /** Runs a function that may be async. */
  run<T>(change: Partial<Scope>, fn: (within: Within) => T): T {
    const scope = this.#changed(change);
    const within: Within = (part) => this.sync(scope, part);
    this.#pending.add(scope);
    let result: T | undefined;
    try {
      result = within(() => this.#tasks.run(scope, () => fn(within)));
    } finally {
      if (!isPromise(result)) this.#close(scope);
    }
    return isPromise(result) ? (Promise.resolve(result).finally(() => this.#close(scope)) as T) : result;
  }
  #close(scope: Scope): void {
    this.#pending.delete(scope);
    if (this.#pending.size === 0) this.#tasks.rest();
  }
  #changed(change: Partial<Scope>): Scope {
    const scope: Record<string, unknown> = { ...this.initial };
    for (const k in scope) scope[k] = k in change ? change[k as keyof Scope] : this.get(k as keyof Scope);
    return scope as unknown as Scope;
  }
}

const AMBIGUOUS =
  "an async noGrad, enableGrad, train or autocast is under way; a page cannot tell if this belongs to it. " +
  "After an await use the function that it passes: noGrad(async (within) => { …; await …; within(() => …); }); " +
  "what does not belong to it says so: enableGrad(() => …)";

export const scopes = new Scopes();
