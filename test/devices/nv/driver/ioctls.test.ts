// The generated tables against sizes and offsets that were counted by hand in NVIDIA's
// headers, and the structures on them.

import { expect, test } from "vitest";
import { CHANNEL_ERRORS, STATUS } from "../../../../src/devices/nv/driver/errornames.ts";
import { MADE_FOR, N, STRUCTS } from "../../../../src/devices/nv/driver/ioctls.ts";
import { element, encode, Struct } from "../../../../src/devices/nv/driver/structs.ts";

test("structures have the sizes that the driver checks", () => {
  const sizes = {
    nv_ioctl_card_info_t: 72,
    nv_ioctl_register_fd_t: 4,
    NVOS00_PARAMETERS: 16,
    NVOS21_PARAMETERS: 32,
    NVOS54_PARAMETERS: 32,
    nv_ioctl_nvos02_parameters_with_fd: 56,
    nv_ioctl_nvos33_parameters_with_fd: 56,
    UVM_INITIALIZE_PARAMS: 16,
    UVM_REGISTER_GPU_PARAMS: 40,
    UVM_REGISTER_GPU_VASPACE_PARAMS: 32,
    UVM_REGISTER_CHANNEL_PARAMS: 56,
    UVM_CREATE_EXTERNAL_RANGE_PARAMS: 24,
    UVM_MAP_EXTERNAL_ALLOCATION_PARAMS: 9264,
    UVM_FREE_PARAMS: 24,
    NvNotification: 16,
    NvA06FControl: 512,
  } as const;
  for (const [name, bytes] of Object.entries(sizes)) {
    expect([name, STRUCTS[name as keyof typeof sizes].bytes]).toEqual([name, bytes]);
  }
});

test("fields lie where C puts them", () => {
  // 8-byte fields are aligned: there is a hole before pMemory and before base
  expect(STRUCTS.nv_ioctl_nvos02_parameters_with_fd.fields.pMemory).toEqual([24, 8]);
  expect(STRUCTS.nv_ioctl_nvos02_parameters_with_fd.fields.fd).toEqual([48, 4]);
  expect(STRUCTS.nv_ioctl_nvos33_parameters_with_fd.fields.length).toEqual([24, 8]);
  expect(STRUCTS.NVOS21_PARAMETERS.fields.pAllocParms).toEqual([16, 8]);
  expect(STRUCTS.NV_MEMORY_ALLOCATION_PARAMS.fields.size).toEqual([64, 8]);
  expect(STRUCTS.UVM_REGISTER_CHANNEL_PARAMS.fields.base).toEqual([32, 8]);
  // 24 bytes of range, 256 GPUs of 36 bytes each
  expect(STRUCTS.UVM_MAP_EXTERNAL_ALLOCATION_PARAMS.fields.gpuAttributesCount).toEqual([24 + 256 * 36, 8]);
  expect(STRUCTS.NvA06FControl.fields).toEqual({ GPGet: [0x88, 4], GPPut: [0x8c, 4] });
  expect(STRUCTS.NvNotification.fields.status).toEqual([14, 2]);
});

test("every field lies inside its structure, and no two overlap", () => {
  for (const [name, { bytes, fields }] of Object.entries(STRUCTS)) {
    const sorted = Object.entries(fields as Record<string, readonly [number, number]>).sort(
      ([, [a]], [, [b]]) => a - b,
    );
    let end = 0;
    for (const [field, [at, size]] of sorted) {
      expect(at, `${name}.${field}`).toBeGreaterThanOrEqual(end);
      end = at + size;
    }
    expect(end, name).toBeLessThanOrEqual(bytes);
  }
});

test("numbers and names", () => {
  expect(MADE_FOR).toMatch(/^580\./);
  expect([N.NV_ESC_CARD_INFO, N.NV_ESC_RM_ALLOC, N.NV_ESC_RM_MAP_MEMORY]).toEqual([0xc8, 0x2b, 0x4e]);
  expect([N.UVM_REGISTER_GPU, N.UVM_CREATE_EXTERNAL_RANGE, N.UVM_FREE]).toEqual([37, 73, 34]);
  expect([N.HOPPER_CHANNEL_GPFIFO_A, N.HOPPER_COMPUTE_A, N.HOPPER_DMA_COPY_A]).toEqual([
    0xc86f, 0xcbc0, 0xc8b5,
  ]);
  // bits 14:12 and 31:30 of the flags: the value is in its place
  expect([N.NVOS02_FLAGS_COHERENCY_CACHED, N.NVOS02_FLAGS_MAPPING_NO_MAP]).toEqual([1 << 12, 1 << 30]);
  expect([STATUS[0], STATUS[0x51], CHANNEL_ERRORS[31]]).toEqual([
    "NV_OK",
    "NV_ERR_NO_MEMORY",
    "FIFO_ERROR_MMU_ERR_FLT",
  ]);
});

test("a structure is written and read by name", () => {
  const memory = { address: 0x1000n, bytes: new Uint8Array(100).fill(0xff) };
  const struct = new Struct("UVM_FREE_PARAMS", memory, 8).fill({ base: 2 ** 40 + 5, length: -1 });
  expect(struct.address).toBe(0x1008n);
  expect([struct.get("base"), struct.get("rmStatus")]).toEqual([2 ** 40 + 5, 0]);
  expect([...memory.bytes.subarray(8, 24)]).toEqual([
    5, 0, 0, 0, 0, 1, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255,
  ]);
  expect([memory.bytes[7], memory.bytes[32]]).toEqual([0xff, 0xff]);
});

test("arrays, text and structures inside structures", () => {
  const name = new Struct("NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS", {
    address: 0n,
    bytes: new Uint8Array(132),
  });
  name.set("gpuNameString", new TextEncoder().encode("NVIDIA X\0rest"));
  expect(name.text("gpuNameString")).toBe("NVIDIA X");
  const pair = encode("NV0080_CTRL_GR_INFO", { index: 3, data: 7 });
  const array = Uint8Array.from([...new Uint8Array(8), ...pair]);
  expect(element("NV0080_CTRL_GR_INFO", array, 1).get("data")).toBe(7);
  expect(() => name.get("gpuNameString")).toThrow(
    "internal: NV2080_CTRL_GPU_GET_NAME_STRING_PARAMS.gpuNameString has 64",
  );
});
