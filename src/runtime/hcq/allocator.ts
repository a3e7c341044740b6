// Memory of an HCQ device. Copies in, copies out and transfers are made of queue commands on the timelines of
// the devices they touch, so the order of submission is the order in which memory changes; a backend adds
// alloc and free.

import { OutOfMemoryError } from "../../errors.ts";
import { chain, type MaybePromise } from "../../helpers.ts";
import { type Allocator, HOST_ALIGN, HOST_SLACK } from "../device.ts";
import type { HCQCompatCompiled } from "./device.ts";

/** What `alloc` of an HCQ device returns. */
export interface HCQCompatAllocRes {
  readonly device: HCQCompatCompiled;
  /** the address as the device's commands write it */
  readonly vaAddr: number | bigint;
  readonly size: number;
  /** memory of the host that the device reaches, which copies in and out go through */
  readonly isHost?: boolean;
}

export abstract class HCQCompatAllocator<R extends HCQCompatAllocRes = HCQCompatAllocRes>
  implements Allocator<R>
{
  readonly canTransfer = true;
  readonly offsetAlign: number = HOST_ALIGN;
  readonly recycles = true;
  readonly isSlow = false;
  readonly slack: number = HOST_SLACK;
  readonly device: HCQCompatCompiled;

  constructor(device: HCQCompatCompiled) {
    this.device = device;
  }

  abstract alloc(nbytes: number, zeroed: boolean): R;
  /**
   * Work that was submitted before may still use the memory. A backend hands it out again at once only to
   * this device, whose later work comes after; to anyone else when the timeline has passed this point.
   */
  abstract free(res: R, nbytes: number): void;
  /** The bytes where the host can reach them, else undefined. */
  abstract view(res: R, nbytes: number): Uint8Array | undefined;
  abstract offset(res: R, nbytes: number, byteOffset: number): R;
  /** Memory that both the host and the device's copy queue reach: what copies in and out go through. */
  protected abstract allocHost(nbytes: number): { readonly res: R; readonly bytes: Uint8Array };

  copyin(dest: R, src: Uint8Array): MaybePromise<void> {
    const { device } = this;
    if (device.isIdle) {
      const window = this.view(dest, src.byteLength);
      if (window !== undefined) return void window.set(src);
    }
    let staged: { readonly res: R; readonly bytes: Uint8Array };
    try {
      staged = this.allocHost(src.byteLength);
    } catch (e) {
      if (!(e instanceof OutOfMemoryError)) throw e;
      return this.#copyinAfter(dest, src, e);
    }
    staged.bytes.set(src);
    const value = device.nextTimelineValue();
    device
      .copyQueue()
      .wait(device.timelineSignal, value - 1)
      .copy(dest, staged.res, src.byteLength)
      .signal(device.timelineSignal, value)
      .submit(device);
    this.free(staged.res, src.byteLength);
  }

  /** No room to stage: what is queued has to end first, then the bytes go straight in. */
  #copyinAfter(dest: R, src: Uint8Array, full: OutOfMemoryError): MaybePromise<void> {
    const write = () => {
      const window = this.view(dest, src.byteLength);
      if (window === undefined) throw full;
      window.set(src);
    };
    return chain(this.device.synchronize(), write);
  }

  copyout(dest: Uint8Array, src: R): MaybePromise<void> {
    const { device } = this;
    if (this.view(src, 0) !== undefined) {
      return chain(device.synchronize(), () => dest.set(this.view(src, dest.byteLength) as Uint8Array));
    }
    const staged = this.allocHost(dest.byteLength);
    const value = device.nextTimelineValue();
    device
      .copyQueue()
      .wait(device.timelineSignal, value - 1)
      .copy(staged.res, src, dest.byteLength)
      .signal(device.timelineSignal, value)
      .submit(device);
    return chain(device.synchronize(), () => {
      dest.set(staged.bytes);
      this.free(staged.res, dest.byteLength);
    });
  }

  /**
   * Between two devices whose signals each other can wait for. The source's copy queue does it, after both;
   * what either does later comes after it.
   */
  transfer(dest: R, src: R, nbytes: number): void {
    const [from, to] = [src.device, dest.device];
    const value = from.nextTimelineValue();
    const queue = from.copyQueue().wait(from.timelineSignal, value - 1);
    if (to !== from) queue.wait(to.timelineSignal, to.timelineValue - 1);
    queue.copy(dest, src, nbytes).signal(from.timelineSignal, value).submit(from);
    if (to !== from) to.waitFor(from.fence());
  }
}
