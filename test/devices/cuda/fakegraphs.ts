// Graphs of the fake driver: nodes with edges, an executable copy whose nodes take new parameters, and
// launches that execute the nodes in a random order that the edges allow, so that a
// missing edge shows as a wrong value.

import { CUDA, type Out } from "../../../src/devices/cuda/driver.ts";
import { Random } from "../../shape/random.ts";
import {
  checkShared,
  checkSizes,
  demand,
  type FakeContext,
  type FakeEvent,
  type FakeState,
  readExtra,
  type Work,
} from "./fake.ts";

interface GraphNode {
  readonly kind: "node";
  readonly graph: FakeGraph;
  readonly type: "kernel" | "copy" | "event";
  readonly before: readonly GraphNode[];
  readonly context: FakeContext;
  /** reads the parameters as they are now */
  readonly read: (params: number) => () => void;
  /** of an event node: what is recorded */
  readonly event: FakeEvent | undefined;
  work: () => void;
}
export interface FakeGraph {
  readonly kind: "graph";
  readonly nodes: GraphNode[];
}
export interface FakeExec {
  readonly kind: "exec";
  readonly graph: FakeGraph;
  readonly work: Map<GraphNode, () => void>;
  launches: number;
  updates: number;
}

export class FakeGraphs {
  readonly #state: FakeState;
  readonly #random = new Random(7);

  constructor(state: FakeState) {
    this.#state = state;
  }

  readonly functions = {
    cuGraphCreate: (out: Out, flags: number) => {
      demand(flags === 0, "cuGraphCreate: flags");
      return this.#give(out, { kind: "graph", nodes: [] });
    },
    cuGraphAddKernelNode: (out: Out, graph: number, before: Out, count: number, params: number) =>
      this.#node(out, "kernel", graph, before, count, (p) => this.#kernel(p), params),
    cuGraphAddMemcpyNode: (
      out: Out,
      graph: number,
      before: Out,
      count: number,
      params: number,
      context: number,
    ) => {
      this.#state.get("context", context, "cuGraphAddMemcpyNode");
      return this.#node(out, "copy", graph, before, count, (p) => this.#copy(p), params);
    },
    cuGraphAddEventRecordNode: (out: Out, graph: number, before: Out, count: number, event: number) =>
      this.#node(out, "event", graph, before, count, (e) => this.#record(e), event),
    cuGraphInstantiateWithFlags: (out: Out, handle: number, flags: number) => {
      demand(flags === 0, "cuGraphInstantiate: flags");
      const graph = this.#get<FakeGraph>("graph", handle);
      const work = new Map(graph.nodes.map((n) => [n, n.work]));
      return this.#give(out, { kind: "exec", graph, work, launches: 0, updates: 0 } satisfies FakeExec);
    },
    cuGraphExecKernelNodeSetParams: (exec: number, node: number, params: number) =>
      this.#update(exec, node, params, "kernel"),
    cuGraphExecMemcpyNodeSetParams: (exec: number, node: number, params: number, context: number) => {
      this.#state.get("context", context, "cuGraphExecMemcpyNodeSetParams");
      return this.#update(exec, node, params, "copy");
    },
    cuGraphLaunch: (handle: number, stream: number) => this.#launch(handle, stream),
    cuGraphExecDestroy: (handle: number) => this.#destroy("exec", handle),
    cuGraphDestroy: (handle: number) => this.#destroy("graph", handle),
  };

  #give(out: Out, thing: FakeGraph | FakeExec | GraphNode): number {
    out[0] = BigInt(this.#state.add(thing));
    return CUDA.SUCCESS;
  }
  #get<T>(kind: "graph" | "node" | "exec", handle: number): T {
    return this.#state.get(kind, handle, `a call on a ${kind}`) as unknown as T;
  }
  #destroy(kind: "graph" | "exec", handle: number): number {
    this.#get(kind, handle);
    this.#state.things.delete(handle);
    return CUDA.SUCCESS;
  }

  #node(
    out: Out,
    type: GraphNode["type"],
    handle: number,
    before: Out,
    count: number,
    read: GraphNode["read"],
    params: number,
  ): number {
    const graph = this.#get<FakeGraph>("graph", handle);
    demand(before.length === count, "a node: as many edges as it says");
    const edges = Array.from(before as BigUint64Array, (n) => this.#get<GraphNode>("node", Number(n)));
    demand(new Set(edges).size === count, "a node: an edge twice");
    demand(
      edges.every((n) => n.graph === graph),
      "a node: an edge to another graph",
    );
    const context = this.#state.current as FakeContext;
    const event = type === "event" ? this.#state.get("event", params, "an event node") : undefined;
    const node: GraphNode = {
      kind: "node",
      graph,
      type,
      before: edges,
      context,
      read,
      event,
      work: read(params),
    };
    graph.nodes.push(node);
    return this.#give(out, node);
  }
  #update(exec: number, node: number, params: number, type: GraphNode["type"]): number {
    const it = this.#get<FakeExec>("exec", exec);
    const n = this.#get<GraphNode>("node", node);
    demand(n.type === type && it.work.has(n), "new parameters: a node of that kind, of that graph");
    demand(n.context === this.#state.current, "new parameters: another context is current");
    it.work.set(n, n.read(params));
    it.updates++;
    return CUDA.SUCCESS;
  }

  /** CUDA_KERNEL_NODE_PARAMS, as cuda.h has it. */
  #kernel(params: number): () => void {
    const state = this.#state;
    const bytes = state.range(params, 56, "CUDA_KERNEL_NODE_PARAMS");
    const view = new DataView(bytes.buffer, bytes.byteOffset, 56);
    const fn = state.get("function", Number(view.getBigUint64(0, true)), "a kernel node");
    const { kernel, context } = fn;
    checkShared(fn, view.getUint32(32, true));
    demand(context === state.current, "a kernel node: a function of another context");
    const [grid, block] = [8, 20].map((at) => [0, 4, 8].map((d) => view.getUint32(at + d, true))) as [
      number[],
      number[],
    ];
    demand(checkSizes(grid, block) === CUDA.SUCCESS, `a kernel node of ${grid} × ${block}`);
    demand(view.getBigUint64(40, true) === 0n, "a kernel node: no list of arguments");
    const args = readExtra(state, Number(view.getBigUint64(48, true))).slice();
    return () => state.launch(kernel, args, grid, block);
  }
  /** CUDA_MEMCPY3D: one row of bytes between two places in device memory. */
  #copy(params: number): () => void {
    const state = this.#state;
    const bytes = state.range(params, 200, "CUDA_MEMCPY3D");
    const view = new DataView(bytes.buffer, bytes.byteOffset, 200);
    const word = (at: number): number => Number(view.getBigUint64(at, true));
    demand(view.getUint32(32, true) === 2 && view.getUint32(120, true) === 2, "a copy node: device memory");
    demand(word(184) === 1 && word(192) === 1, "a copy node: one row");
    const known = [32, 48, 120, 136, 176, 184, 192];
    for (let at = 0; at < 200; at += 8)
      demand(known.includes(at) || word(at) === 0, `a copy node: word ${at}`);
    const [to, from] = [136, 48].map((at) => state.range(word(at), word(176), "a copy node")) as [
      Uint8Array,
      Uint8Array,
    ];
    return () => void to.set(from);
  }
  #record(handle: number): () => void {
    const event: FakeEvent = this.#state.get("event", handle, "an event node");
    return () => {
      event.done = event.asked;
      event.at = this.#state.time;
    };
  }

  #launch(handle: number, stream: number): number {
    const exec = this.#get<FakeExec>("exec", handle);
    exec.launches++;
    const work = new Map(exec.work);
    // until it has run, whoever asks an event of the graph has to wait
    for (const { event } of exec.graph.nodes) if (event !== undefined) event.asked++;
    const run: Work["run"] = () => {
      const done = new Set<GraphNode>();
      while (done.size < exec.graph.nodes.length && this.#state.sticky === 0) {
        const ready = exec.graph.nodes.filter((n) => !done.has(n) && n.before.every((b) => done.has(b)));
        const next = this.#random.pick(ready);
        (work.get(next) as () => void)();
        done.add(next);
      }
    };
    this.#state.stream(stream, "cuGraphLaunch").queue.push({ what: "graph", run });
    return CUDA.SUCCESS;
  }
}
