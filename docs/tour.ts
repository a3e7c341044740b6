// 2 + 3, four times: as a list of uops, as a ScheduleItem, as LazyBuffers, as Tensors. Each level builds the
// previous one for you: read from the bottom of the compiler up to the line that you would really write.
//
// Run it with `npm run tour`.

import {
  BinaryOps,
  Buffer,
  BufferCopy,
  BufferOps,
  CommandQueue,
  ConstBuffer,
  createSchedule,
  Device,
  dtypes,
  LazyBuffer,
  type LazyOp,
  MemBuffer,
  PtrDType,
  type Renderer,
  runSchedule,
  type ScheduleItem,
  ShapeTracker,
  showAst,
  Tensor,
  UOpGraph,
  UOps,
} from "gradloom";
import { ClangLanguage, uopsToCStyle } from "gradloom/render";

const wasm = await Device.open("WASM");

/** One int in an array of the host, which is a device too: EXT. */
const onHost = (value: number): Buffer =>
  new Buffer("EXT", 1, dtypes.int).allocate(new Uint8Array(new Int32Array([value]).buffer));

/** One int in the memory of WASM: allocated there, then copied. */
function onWasm(value: number): Buffer {
  const buffer = new Buffer("WASM", 1, dtypes.int).allocate();
  new BufferCopy().exec([buffer, onHost(value)]);
  return buffer;
}

// -----------------------------------------------------------------------------------------------------------
console.log("1. UOps: what one kernel does, step by step\n");

// A kernel is a list. Every uop names its sources; add() returns the uop, so that later ones can use it.
const uops = new UOpGraph();
const data0 = uops.add(UOps.DEFINE_GLOBAL, PtrDType(dtypes.int), [], [0, "data0", true]); // true: written to
const data1 = uops.add(UOps.DEFINE_GLOBAL, PtrDType(dtypes.int), [], [1, "data1", false]);
const data2 = uops.add(UOps.DEFINE_GLOBAL, PtrDType(dtypes.int), [], [2, "data2", false]);
const zero = uops.add(UOps.CONST, dtypes.int, [], 0);
const left = uops.add(UOps.LOAD, dtypes.int, [data1, zero]);
const right = uops.add(UOps.LOAD, dtypes.int, [data2, zero]);
const added = uops.add(UOps.ALU, dtypes.int, [left, right], BinaryOps.ADD);
uops.add(UOps.STORE, undefined, [data0, zero, added]);
console.log(String(uops));

// A renderer translates the list: here to C, for reading, and to a WebAssembly module, for running.
console.log(`\n${uopsToCStyle(ClangLanguage, "add", uops)}\n`);
const source = (wasm.renderer as Renderer).render("add", uops);
const program = await wasm.compile("add", source);

// The kernel takes the buffers in the order of their numbers: data0 is the answer.
const answer = new Buffer("WASM", 1, dtypes.int).allocate();
const buffers = [answer, onWasm(2), onWasm(3)];
await program.run(
  buffers.map((b) => b.handle),
  { globalSize: [], localSize: [], vals: [] },
  false,
);
console.log(
  `${(source.code as Uint8Array).byteLength} bytes of WebAssembly say: ${(await answer.data())[0]}`,
);

// If both were constants, nothing would be left to run: add() folds constants.
const folded = new UOpGraph();
const two = folded.add(UOps.CONST, dtypes.int, [], 2);
const three = folded.add(UOps.CONST, dtypes.int, [], 3);
const five = folded.add(UOps.ALU, dtypes.int, [two, three], BinaryOps.ADD);
console.log(`two constants are folded at once: ${five.op} ${five.arg}`);

// -----------------------------------------------------------------------------------------------------------
console.log("\n2. ScheduleItem: what is to be computed, and on which buffers\n");

// The AST says what, not how: no loops, no addresses. A ShapeTracker says how each buffer is seen; here one
// element is seen as one element. Such a tree is lowered to the uops above.
const st = ShapeTracker.fromShape([1]);
const one = { dtype: dtypes.int, shape: [1] };
const load: LazyOp = { op: BufferOps.LOAD, srcs: [], arg: new MemBuffer(1, dtypes.int, st), ...one };
const constant: LazyOp = { op: BufferOps.CONST, srcs: [], arg: new ConstBuffer(3, dtypes.int, st), ...one };
const sum: LazyOp = { op: BinaryOps.ADD, srcs: [load, constant], arg: undefined, ...one };
const store: LazyOp = { op: BufferOps.STORE, srcs: [sum], arg: new MemBuffer(0, dtypes.int, st), ...one };
console.log(showAst(store));

// This time the 2 is in memory and the 3 is part of the kernel. The output has no memory yet.
const output = new Buffer("WASM", 1, dtypes.int);
const item: ScheduleItem = {
  ast: [store],
  outputs: [output],
  inputs: [onWasm(2)],
  varVals: new Map(),
  lazies: [],
};

// The queue lowers, renders and compiles the item when it reaches it, and allocates the output.
const queue = new CommandQueue([item]);
console.log(`\nin the queue of ${queue}`);
await queue.run();
console.log(`the queue ran and left: ${(await output.data())[0]}`);

// -----------------------------------------------------------------------------------------------------------
console.log("\n3. LazyBuffers: a graph of what depends on what\n");

// Nothing runs here either. A host buffer is a leaf, a COPY moves it to the device, ADD takes two nodes.
const a = LazyBuffer.fromBuffer(onHost(2), [1]).copyToDevice("WASM");
const b = LazyBuffer.fromBuffer(onHost(3), [1]).copyToDevice("WASM");
const c = a.e(BinaryOps.ADD, b);
console.log(`${c}\n  of ${a}\n  and ${b}`);

// The schedule turns the graph into items: two copies and one kernel, in dependency order.
const schedule = createSchedule([c]);
console.log(`\nscheduled: ${schedule.map((si) => si.ast[0]?.op).join(", ")}`);
await runSchedule(schedule);

// Now c has memory and no sources, so asking again costs nothing.
console.log(`${c}: ${(await c.buffer.data())[0]}`);
console.log(`scheduled again: ${createSchedule([c]).length} items`);

// -----------------------------------------------------------------------------------------------------------
console.log("\n4. Tensors: what you would write\n");

// A Tensor is a LazyBuffer with a good set of methods. Asking for a value makes everything above happen.
const t = new Tensor([2]).add(new Tensor([3]));
console.log(`${t} stands for ${t.lazydata}`);
console.log(`and is ${await t.item()}`);
