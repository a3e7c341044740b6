// Which values of a kernel stand as expressions where they are used, instead of getting a name. In goes the
// linear list, out comes the set of inlined values. Only values with one user are inlined, and only where
// this changes neither the meaning (an accumulator is assigned in between) nor the amount of work in a loop.

import { opCost } from "../ops.ts";
import { type UOp, type UOpName, valueType } from "../uop/node.ts";
import { REPEATS_SOURCES } from "./spelling.ts";

const CANDIDATES: ReadonlySet<UOpName> = new Set<UOpName>(["ALU", "CAST", "BITCAST", "GEP", "VECTORIZE"]);
/** Compilers limit how deep brackets nest (clang: 256), and people sooner. */
const MAX_NESTING = 32;

/** What a value's text contains if it is inlined. */
interface Content {
  readonly readsAcc: boolean;
  /** worth computing before a loop rather than in it: compilers do not hoist every call */
  readonly costly: boolean;
  readonly nesting: number;
}
const NOTHING: Content = { readsAcc: false, costly: false, nesting: 0 };
const ACC: Content = { ...NOTHING, readsAcc: true };

interface UseSite {
  readonly user: UOp;
  readonly index: number;
}

/** How many loops are open and how many accumulators were assigned, at every place of the list. */
function positions(uops: readonly UOp[]): { readonly depth: number[]; readonly phis: number[] } {
  const depth: number[] = [];
  const phis: number[] = [];
  let d = 0;
  let p = 0;
  for (const u of uops) {
    if (u.op === "ENDLOOP") d--;
    depth.push(d);
    phis.push(p);
    if (u.op === "LOOP") d++;
    if (u.op === "PHI") p++;
  }
  return { depth, phis };
}

function usersOf(uops: readonly UOp[]): Map<UOp, UseSite[]> {
  const users = new Map<UOp, UseSite[]>();
  for (const [index, user] of uops.entries()) {
    for (const s of user.srcs) {
      const list = users.get(s);
      if (list === undefined) users.set(s, [{ user, index }]);
      else list.push({ user, index });
    }
  }
  return users;
}

/** A user that takes vectors lane by lane: it names them as often as there are lanes. */
export type ByLane = (user: UOp) => boolean;

/** Users that take their source by name: they read it several times. */
function wantsName(u: UOp, user: UOp, byLane: ByLane): boolean {
  if (valueType(u).count > 1) return byLane(user);
  return user.op === "ALU" && REPEATS_SOURCES.has(user.fn);
}

export function planInlining(uops: readonly UOp[], byLane: ByLane): Set<UOp> {
  const { depth, phis } = positions(uops);
  const users = usersOf(uops);
  const inlined = new Set<UOp>();
  const contents = new Map<UOp, Content>();
  for (const [i, u] of uops.entries()) {
    if (u.op === "DEFINE_ACC" || u.op === "PHI") contents.set(u, ACC);
    if (!CANDIDATES.has(u.op)) continue;
    const inside = u.srcs.map((s) => contents.get(s) ?? NOTHING);
    const content: Content = {
      readsAcc: inside.some((c) => c.readsAcc),
      costly: inside.some((c) => c.costly) || (u.op === "ALU" && opCost(u.fn) > 1),
      nesting: Math.max(...inside.map((c) => c.nesting)) + 1,
    };
    const uses = users.get(u) ?? [];
    if (uses.length > 1 && u.op !== "GEP") continue;
    if (content.nesting > MAX_NESTING || uses.some((p) => wantsName(u, p.user, byLane) && u.op !== "GEP"))
      continue;
    if (content.readsAcc && uses.some((p) => phis[p.index] !== phis[i])) continue;
    if (content.costly && uses.some((p) => (depth[p.index] ?? 0) > (depth[i] ?? 0))) continue;
    inlined.add(u);
    contents.set(u, content);
  }
  return inlined;
}
