// Streams of words and QMDs: what is written can be read back, by the numbers of NVIDIA's headers.

import { describe, expect, test } from "vitest";
import { COMPUTE, COPY, HOST, QMD3, QMD4 } from "../../../../src/devices/nv/commands/classes.ts";
import { method, pack, parse, show, unpack } from "../../../../src/devices/nv/commands/methods.ts";
import {
  carveout,
  maxShared,
  type Qmd,
  type QmdProgram,
  qmdFor,
} from "../../../../src/devices/nv/commands/qmd.ts";
import { high, low } from "../../../../src/runtime/hcq/words.ts";

describe("methods", () => {
  test("a header is opcode, count, subchannel and method", () => {
    expect(method("COMPUTE", COMPUTE.SEND_PCAS_A, 0x123)).toEqual([
      (1 << 29) | (1 << 16) | (1 << 13) | (0x2b4 >> 2),
      0x123,
    ]);
    expect(method("COPY", COPY.OFFSET_IN_UPPER, 1, 2, 3, 4)[0]).toBe(
      (1 << 29) | (4 << 16) | (4 << 13) | (0x400 >> 2),
    );
    expect(method("HOST", HOST.SEM_ADDR_LO, 0)[0]).toBe((1 << 29) | (1 << 16) | (0x5c >> 2));
  });
  test("fields are set by name", () => {
    const { SEM_EXECUTE } = HOST;
    expect(pack(SEM_EXECUTE, { OPERATION: "ACQ_CIRC_GEQ", PAYLOAD_SIZE: "64BIT" })).toBe(3 | (1 << 24));
    expect(pack(SEM_EXECUTE, { REDUCTION_FORMAT: "UNSIGNED" })).toBe(2 ** 31);
    expect(() => pack(HOST.SEM_ADDR_HI, { OFFSET: 256 })).toThrow(
      /256 does not fit the field OFFSET of 8 bits/,
    );
  });
  test("an address is two words, also above 4 GiB", () => {
    const va = 0xfe_8765_4321;
    expect([high(va), low(va)]).toEqual([0xfe, 0x87654321]);
  });
  test("a stream is read back word by word", () => {
    const words = [
      ...method("HOST", HOST.SEM_ADDR_LO, 0x1000, 2),
      ...method("COPY", COMPUTE.SET_OBJECT, 0xc8b5),
      ...method("COPY", COPY.LAUNCH_DMA, pack(COPY.LAUNCH_DMA, { SRC_MEMORY_LAYOUT: "PITCH" })),
    ];
    expect([...parse(words)].map((s) => [s.to, s.name, s.data])).toEqual([
      ["HOST", "SEM_ADDR_LO", 0x1000],
      ["HOST", "SEM_ADDR_HI", 2],
      ["COPY", "SET_OBJECT", 0xc8b5],
      ["COPY", "LAUNCH_DMA", 128],
    ]);
    expect(show(words)).toEqual([
      "HOST.SEM_ADDR_LO OFFSET=0x400",
      "HOST.SEM_ADDR_HI OFFSET=0x2",
      "COPY.SET_OBJECT CLASS_ID=0xc8b5",
      "COPY.LAUNCH_DMA SRC_MEMORY_LAYOUT=PITCH",
    ]);
  });
  test("a stream that we did not write is refused", () => {
    expect(() => [...parse([0])]).toThrow(/word 0, 0x0, is not a header/);
    expect(() => [...parse(method("COMPUTE", { at: 0x1234, fields: {} }, 1))]).toThrow(
      /has no method 0x1234/,
    );
    expect(() => [...parse(method("HOST", HOST.SEM_ADDR_LO, 1, 2).slice(0, 2))]).toThrow(
      /ends 1 words before/,
    );
    const [odd] = parse(method("HOST", HOST.SEM_ADDR_HI, 0x100));
    expect(() => unpack(odd as never)).toThrow(/SEM_ADDR_HI = 0x100: no field has the bits 0x100/);
  });
});

describe("QMDs", () => {
  const program: QmdProgram = {
    va: 0x21_2345_6780,
    codeBytes: 0x1234,
    registers: 40,
    barriers: 1,
    shared: 2048,
    local: 400,
    arch: 90,
  };
  /** Bits of the words, by the numbers of the header. */
  const bits = ({ words }: Qmd, top: number, bottom: number): number =>
    ((words[bottom >> 5] as number) >>> (bottom & 31)) & (2 ** (top - bottom + 1) - 1);

  test("version 4: the places that facts about Hopper name", () => {
    const qmd = qmdFor(program);
    qmd.size([70000, 3, 2], [32, 4, 1], carveout(90, 33_000));
    qmd.constant(0, 0x30_0000_0040, 0x224);
    qmd.release(1, 0x40_0000_0010, 0x1_0000_0007);
    qmd.chain(0x50_0000_0200);
    expect(qmd.words.byteLength).toBe(384);
    expect([bits(qmd, 583, 580), bits(qmd, 25, 23)]).toEqual([4, 2]);
    expect(bits(qmd, 1208, 1200)).toBe(40);
    expect(bits(qmd, 601, 584)).toBe(2048);
    // 8 KiB at least, 64 KiB by choice, 228 KiB at most, each in units of 4 KiB and one more
    expect([bits(qmd, 613, 608), bits(qmd, 625, 620), bits(qmd, 619, 614)]).toEqual([3, 17, 58]);
    expect([bits(qmd, 1055, 1024), bits(qmd, 1071, 1056), bits(qmd, 1103, 1088)]).toEqual([70000, 3, 2]);
    expect([bits(qmd, 1167, 1152), bits(qmd, 1183, 1168), bits(qmd, 1199, 1184)]).toEqual([32, 4, 1]);
    expect([qmd.words[1216 / 32], bits(qmd, 1272, 1248)]).toEqual([0x23456780, 0x21]);
    expect([qmd.words[1536 / 32], bits(qmd, 1586, 1568)]).toEqual([0xc0000001, 0]);
    expect(bits(qmd, 1599, 1587)).toBe(0x230 / 16);
    expect([bits(qmd, 320, 320), bits(qmd, 336, 336), bits(qmd, 352, 352)]).toEqual([0, 1, 0]);
    expect([...qmd.words.slice(768 / 32, 896 / 32)]).toEqual([0x10, 0x40, 7, 1]);
    expect([bits(qmd, 368, 368), qmd.words[448 / 32]]).toEqual([1, 0x50000002]);
    expect(String(qmd)).toMatch(/QMD_TYPE=0x2 .*RELEASE_ENABLE\(1\)=0x1/);
  });
  test("version 3, for GPUs before Hopper", () => {
    const qmd = qmdFor({ ...program, arch: 86 });
    qmd.size([7, 3, 2], [32, 4, 1], 9);
    qmd.release(2, 0x40_0000_0010, 9);
    qmd.chain(0x50_0000_0200);
    expect(qmd.words.byteLength).toBe(256);
    expect([bits(qmd, 583, 580), bits(qmd, 656, 648), qmd.words[384 / 32]]).toEqual([3, 40, 7]);
    expect([bits(qmd, 1719, 1719), qmd.words[1664 / 32], qmd.words[1728 / 32]]).toEqual([1, 0x10, 9]);
    expect([bits(qmd, 512, 512), qmd.words[480 / 32]]).toEqual([1, 0x50000002]);
  });
  test("a copy is apart; what is changed later is changed on the GPU, too", () => {
    const template = qmdFor(program);
    const qmd = template.copy();
    qmd.home = new Int32Array(96);
    qmd.size([5, 1, 1], [1, 1, 1], 3);
    expect(template.words[1024 / 32]).toBe(0);
    expect([qmd.words[1024 / 32], qmd.home[1024 / 32]]).toEqual([5, 5]);
  });
  test("what does not fit is refused by name", () => {
    expect(() => qmdFor(program).size([1, 70000, 1], [1, 1, 1], 3)).toThrow(/70000 does not fit GRID_HEIGHT/);
    expect(() => qmdFor({ ...program, shared: 300_000 })).toThrow(
      /wants 300000 bytes of shared memory, of 233472/,
    );
  });
  test("no two fields of a version share a bit", () => {
    for (const fields of [QMD3, QMD4]) {
      const owner = new Map<number, string>();
      for (const [name, [top, bottom]] of Object.entries(fields))
        for (let bit = bottom; bit <= top; bit++) {
          expect(owner.get(bit), `${name} bit ${bit}`).toBeUndefined();
          owner.set(bit, name);
        }
    }
  });

  test("a block's shared memory: all that the SM can give but a KiB, and no more", () => {
    expect([80, 86, 89, 90].map(maxShared)).toEqual([166912, 101376, 101376, 232448]);
    expect(() => qmdFor({ ...program, arch: 90, shared: maxShared(90) + 1024 })).not.toThrow();
    expect(() => qmdFor({ ...program, arch: 90, shared: maxShared(90) + 1152 })).toThrow("of 233472");
  });
});
