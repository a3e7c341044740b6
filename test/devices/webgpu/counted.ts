// A Gpu around another one: it counts what is created, submitted and alive, and leaves the work to the other.

import type { Gpu, GpuBuffer, GpuDevice, GpuEncoder } from "../../../src/devices/webgpu/api.ts";

export interface Counted {
  readonly gpu: Gpu;
  /** calls by name, of the device, its queue and its encoders */
  readonly calls: Map<string, number>;
  /** buffers that were created and not destroyed, and their bytes */
  readonly alive: { buffers: number; bytes: number };
  /** the devices that were opened */
  readonly devices: GpuDevice[];
  /** Waits until all pipelines that were asked for are there, and whoever waits for them knows. */
  compiled(): Promise<void>;
}

export function counted(inner: Gpu): Counted {
  const calls = new Map<string, number>();
  const alive = { buffers: 0, bytes: 0 };
  const devices: GpuDevice[] = [];
  const compiling = new Set<Promise<unknown>>();
  const noted = <T extends object>(target: T, own: Partial<T> = {}): T =>
    new Proxy(target, {
      get(of, key: string) {
        if (Object.hasOwn(own, key)) return own[key as keyof T];
        const value = Reflect.get(of, key) as unknown;
        if (typeof value !== "function") return value;
        return (...args: unknown[]) => {
          calls.set(key, (calls.get(key) ?? 0) + 1);
          return (value as (...xs: unknown[]) => unknown).apply(of, args);
        };
      },
      set: (of, key, value) => Reflect.set(of, key, value),
    });
  const counting = (buffer: GpuBuffer): GpuBuffer => {
    alive.buffers++;
    alive.bytes += buffer.size;
    const destroy = buffer.destroy.bind(buffer);
    let isAlive = true;
    buffer.destroy = () => {
      if (isAlive) {
        alive.buffers--;
        alive.bytes -= buffer.size;
      }
      isAlive = false;
      destroy();
    };
    return buffer;
  };
  const wrap = (device: GpuDevice): GpuDevice => {
    devices.push(device);
    const queue = noted(device.queue);
    const createBuffer: GpuDevice["createBuffer"] = (of) => {
      calls.set("createBuffer", (calls.get("createBuffer") ?? 0) + 1);
      return counting(device.createBuffer(of));
    };
    const createCommandEncoder: GpuDevice["createCommandEncoder"] = () => {
      calls.set("createCommandEncoder", (calls.get("createCommandEncoder") ?? 0) + 1);
      const encoder = device.createCommandEncoder();
      const begin = encoder.beginComputePass.bind(encoder);
      const beginComputePass: GpuEncoder["beginComputePass"] = (of) => {
        const pass = begin(of);
        const dispatch = pass.dispatchWorkgroups.bind(pass);
        pass.dispatchWorkgroups = (...size) => {
          calls.set("dispatchWorkgroups", (calls.get("dispatchWorkgroups") ?? 0) + 1);
          dispatch(...size);
        };
        return pass;
      };
      return Object.assign(encoder, { beginComputePass });
    };
    const createComputePipelineAsync: GpuDevice["createComputePipelineAsync"] = (of) => {
      calls.set("createComputePipelineAsync", (calls.get("createComputePipelineAsync") ?? 0) + 1);
      const made = device.createComputePipelineAsync(of);
      compiling.add(made);
      return made;
    };
    return noted(device, { queue, createBuffer, createCommandEncoder, createComputePipelineAsync });
  };
  const gpu: Gpu = {
    ...(inner.wgslLanguageFeatures && { wgslLanguageFeatures: inner.wgslLanguageFeatures }),
    async requestAdapter(options) {
      const adapter = await inner.requestAdapter(options);
      if (adapter === null) return null;
      return noted(adapter, { requestDevice: async (of) => wrap(await adapter.requestDevice(of)) });
    },
  };
  const compiled = async (): Promise<void> => {
    await Promise.allSettled([...compiling]);
    compiling.clear();
    await new Promise((next) => setTimeout(next, 5));
  };
  return { gpu, calls, alive, devices, compiled };
}
