// GRAPH=1: writes the lazy graph of a schedule as GRAPHPATH.dot and GRAPHPATH.svg through the host's file
// writer. Later graphs get a number.

import { writeText } from "#host/files";
import { env } from "../env.ts";
import type { LazyBuffer } from "../lazy/lazybuffer.ts";
import { fuse } from "../schedule/fuse.ts";
import { collectGraph, toDot, toSvg } from "./graph.ts";

let written = 0;

export function logGraph(outs: readonly LazyBuffer[]): void {
  const nodes = outs.flatMap((out) => out.parts);
  const graph = collectGraph(nodes, fuse(nodes).realizes);
  const path = written === 0 ? env.GRAPHPATH : `${env.GRAPHPATH}-${written}`;
  written++;
  writeText(`${path}.dot`, toDot(graph));
  writeText(`${path}.svg`, toSvg(graph));
}
