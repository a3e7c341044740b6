// GRAPH=1: writes the lazy graph of a schedule as GRAPHPATH.dot and GRAPHPATH.svg, through the host's file writer.

import { writeText } from "#devices";
import { env } from "../env.ts";
import type { LazyBuffer } from "../lazy/lazybuffer.ts";
import { cut } from "../schedule/fuse.ts";
import { collectGraph, toDot, toSvg } from "./graph.ts";

export function logGraph(outs: readonly LazyBuffer[]): void {
  const graph = collectGraph(outs, cut(outs).realizes);
  writeText(`${env.GRAPHPATH}.dot`, toDot(graph));
  writeText(`${env.GRAPHPATH}.svg`, toSvg(graph));
}
