// What the suites of this folder share: the devices they run on, tensors of exact values, edge values of each
// type, and comparison to the bit or to a distance in ulps. A device that cannot be
// opened skips its tests and says why.

import { DeviceError, type DType, dtypes, Tensor } from "gradloom";
import { expect, test } from "vitest";
import { bounds, scalarOf, type Value, wrap, writeValue } from "../../src/dtype.ts";
import { LazyBuffer } from "../../src/lazy/lazybuffer.ts";
import { type AluOp, isDefinedOn, OPS } from "../../src/ops.ts";
import { Buffer } from "../../src/runtime/buffer.ts";
import { Device } from "../../src/runtime/registry.ts";
import "../devices/amd/register.ts";
import { LATE } from "../devices/nv/register.ts";
import "../devices/metal/register.ts";
import "../devices/webgpu/swiftshader.ts";

/** NULL runs nothing; MOCKLATE is MOCKNV once more, with queues that are late, for the tests of these. */
const LEFT_OUT: readonly string[] = ["NULL", LATE];
/** JS interprets the kernels of these: a hundred thousand elements take it seconds, and show nothing more. */
export const INTERPRETED: readonly string[] = ["JS", "MOCKMETAL", "MOCKNV"];
/** Every device of the registry that computes; those that this machine does not have skip with the reason. */
export const DEVICES: readonly string[] = Device.kinds
  .filter((kind) => Device.computes(kind) && !LEFT_OUT.includes(kind))
  .sort();

/** Why a device cannot be opened here; undefined: it can. */
export async function whyClosed(name: string): Promise<string | undefined> {
  try {
    await Device.open(name);
    return undefined;
  } catch (e) {
    if (e instanceof DeviceError) return e.message;
    throw e;
  }
}
const closed = new Map(await Promise.all(DEVICES.map(async (d) => [d, await whyClosed(d)] as const)));

/** Whether values can be of this type there. */
export const has = (device: string, d: DType): boolean => Device.get(device).renderer?.support(d) !== "none";
/** Whether float32 is IEEE 754's there, with subnormals and signs of zeros. */
export const isExactOn = (device: string): boolean => Device.get(device).renderer?.ieee === true;
/** Those of the types that the device has. */
export const typesOn = (device: string, types: readonly DType[] = dtypes.all): readonly DType[] =>
  types.filter((d) => has(device, d));

/** The device of the test that runs keeps subnormal numbers and the sign of 0. */
let isExact = true;
const SMALLEST_NORMAL = 2 ** -126;
/** A number that counts as 0 where subnormals do; the same of what was computed with one. */
export const isSubnormal = (x: Value | undefined): boolean =>
  typeof x === "number" && x !== 0 && Math.abs(x) < SMALLEST_NORMAL;

/** Devices whose hardware few machines have: one skipped test a file says why, not each. */
const RARE: readonly string[] = ["AMD", "CUDA", "METAL", "NV", "OPENCL", "WEBGPU"];
const told = new Set<string>();

/** The same test on every device that has these types. */
export function deviceTest(
  title: string,
  body: (device: string) => Promise<void>,
  ...needs: readonly DType[]
): void {
  for (const device of DEVICES) {
    if (RARE.includes(device) && closed.get(device) !== undefined) {
      if (told.has(device)) continue;
      told.add(device);
    }
    test(`${device}: ${title}`, async ({ skip }) => {
      const reason = closed.get(device);
      skip(reason !== undefined, reason);
      const lacking = needs.find((d) => !has(device, d));
      skip(lacking !== undefined, `${device} has no ${lacking?.name}`);
      isExact = isExactOn(device);
      await body(device);
    });
  }
}

// ---- tensors in and out ----

export const count = (shape: readonly number[]): number => shape.reduce((a, b) => a * b, 1);

/** Values to the bit: nothing is converted on the way in. */
export function tensor(
  device: string,
  dtype: DType,
  values: readonly Value[],
  shape: readonly number[] = [values.length],
): Tensor {
  expect(values.length, "harness: values for the shape").toBe(count(shape));
  const bytes = new Uint8Array(values.length * dtype.itemsize);
  const view = new DataView(bytes.buffer);
  values.forEach((x, i) => void writeValue(view, i * dtype.itemsize, dtype, x));
  const buffer = new Buffer("EXT", values.length, dtype).allocate(bytes);
  return new Tensor(LazyBuffer.fromBuffer(buffer, shape).copyToDevice(device));
}

export const read = async (t: Tensor): Promise<Value[]> => Array.from<Value>(await t.data());

/** One op on the lazy graph, for the ops and types that no method of Tensor offers. */
export const alu = (op: AluOp, ...xs: readonly Tensor[]): Tensor => {
  const [first, ...rest] = xs.map((x) => x.lazydata) as [LazyBuffer, ...LazyBuffer[]];
  return new Tensor(first.e(op, ...rest));
};

export interface Column {
  readonly dtype: DType;
  readonly values: readonly Value[];
}

type Rows = (a: Tensor, b: Tensor, c: Tensor, d: Tensor) => Tensor;

/**
 * Several functions of the same columns in one kernel: row i of the result is function i. All of them are
 * computed for each element and one is chosen, so that a compiler that takes its time is called once.
 */
export async function rows(
  device: string,
  columns: readonly Column[],
  functions: readonly Rows[],
): Promise<Value[][]> {
  const [k, n] = [functions.length, (columns[0] as Column).values.length];
  const inputs = columns.map((c) => tensor(device, c.dtype, c.values, [1, n]).expand(k, n));
  const which = tensor(
    device,
    dtypes.int32,
    functions.map((_, i) => i),
    [k, 1],
  ).expand(k, n);
  const results = functions.map((f) => f(...(inputs as Parameters<Rows>)));
  const all = results.reduceRight((rest, r, i) => which.eq(i).where(r, rest));
  const flat = await read(all);
  return functions.map((_, i) => flat.slice(i * n, (i + 1) * n));
}

// ---- values ----

// biome-ignore format: a table
const FLOATS = [
  0, -0, 1, -1, 0.5, -2.5, 1.5, 3, 7.25, -100.125, 1e-3, 255.9, 2049, 65504, 65520, 2 ** 24 + 1, 1e10, -3e9,
  1e30, -1e30, 2 ** -24, 2 ** -25, 1e-40, 2 ** -126, Math.PI, 2 ** 31, -(2 ** 31) - 1, 2 ** 63, 1.8e19,
  Number.MAX_VALUE, Number.MIN_VALUE, 3.4028234663852886e38, -3.4028234663852886e38, NaN, Infinity, -Infinity,
];

/**
 * NaN, infinities, both zeros, subnormals and the ends of the range; for integers
 * the ends and what is near zero.
 */
export function edges(d: DType): Value[] {
  if (d.kind === "bool") return [0, 1];
  if (d.isFloat) return inRange(FLOATS.map((x) => wrap(d, x))).filter(isFirst);
  const [lo, hi] = bounds(d).map(BigInt) as [bigint, bigint];
  const near = [-33n, -7n, -2n, -1n, 0n, 1n, 2n, 3n, 5n, 8n, 31n, 32n, 65n, 100n];
  return [lo, lo + 1n, ...near, hi / 2n, hi - 1n, hi]
    .filter((x) => x >= lo && x <= hi)
    .map((x) => (d.isBig ? x : Number(x)))
    .filter(isFirst);
}
/** Without those that may count as 0 on the device of the test, or whose small parts may. */
export const inRange = <V extends Value>(xs: readonly V[]): V[] =>
  isExact ? [...xs] : xs.filter((x) => x === 0 || !isSubnormal(Number(x) * 2 ** -6));
const isFirst = (x: Value, i: number, all: readonly Value[]): boolean =>
  all.findIndex((y) => Object.is(x, y)) === i;

const NOT_BOOL: readonly AluOp[] = ["SHL", "SHR"];

/** The ops that a type has. */
export const opsOf = (d: DType): AluOp[] =>
  (Object.keys(OPS) as AluOp[]).filter(
    (op) => isDefinedOn(op, d) && !(d.kind === "bool" && NOT_BOOL.includes(op)),
  );

// ---- comparison ----

/** The distance between neighbouring values of a float type near x. */
export function ulp(d: DType, x: number): number {
  const formats: Record<string, readonly [mantissa: number, smallest: number]> = {
    float16: [10, -14],
    bfloat16: [7, -126],
    float32: [23, -126],
    float64: [52, -1022],
  };
  const [mantissa, smallest] = formats[scalarOf(d).name] as readonly [number, number];
  const exponent = x === 0 ? smallest : Math.max(smallest, exponentOf(Math.abs(x)));
  return 2 ** (exponent - mantissa);
}
function exponentOf(x: number): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, x);
  return ((view.getUint16(0) >> 4) & 0x7ff) - 1023;
}

export interface Tolerance {
  /** units in the last place of the type; what should be NaN or infinite must be exactly that */
  readonly ulps?: number | ((i: number) => number);
  /** 0 and -0 are the same: which of them MAX gives is not specified */
  readonly zeros?: "equal";
}

function agrees(
  d: DType,
  got: Value | undefined,
  want: Value,
  i: number,
  { ulps: allowed = 0, zeros }: Tolerance,
): boolean {
  const ulps = typeof allowed === "number" ? allowed : allowed(i);
  if (Object.is(got, want)) return true;
  if (typeof got !== "number" || typeof want !== "number") return false;
  if ((zeros === "equal" || !isExact) && got === want) return true;
  if (!isExact && got === 0 && isSubnormal(want)) return true;
  if (ulps === 0 || !Number.isFinite(want)) return false;
  // within the tolerance of the largest value, infinity is as good as a number
  if (!Number.isFinite(got))
    return Math.sign(got) === Math.sign(want) && !Number.isFinite(wrap(d, want * 1.01));
  return Math.abs(got - want) <= ulps * ulp(d, want);
}

const show = (x: Value | undefined): string =>
  Object.is(x, -0) ? "-0" : typeof x === "bigint" ? `${x}n` : String(x);

/** Compares all, reports the first few that differ. `what(i)` says what element i is. */
export function expectValues(
  d: DType,
  got: readonly Value[],
  want: readonly Value[],
  what: string | ((i: number) => string),
  tolerance: Tolerance = {},
): void {
  const name = (i: number) => (typeof what === "string" ? `${what} [${i}]` : what(i));
  const bad: string[] = [];
  want.forEach((w, i) => {
    if (agrees(d, got[i], w, i, tolerance)) return;
    bad.push(`${name(i)} (${d.name}): got ${show(got[i])}, expected ${show(w)}`);
  });
  const title = typeof what === "string" ? what : d.name;
  expect(got.length, `${title}: the number of elements`).toBe(want.length);
  expect(bad.slice(0, 10), `${title}: ${bad.length} of ${want.length} differ`).toEqual([]);
}

export const showValues = (xs: readonly Value[]): string => xs.map(show).join(", ");
