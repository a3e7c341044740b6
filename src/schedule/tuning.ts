// What makes large schedules fast, as one piece: engine/ondemand gives it to schedule.ts, in a page together
// with what makes large kernels fast.

export { shareOffsets } from "./offsets.ts";
export { repeatedIn } from "./repeat.ts";
export { storeScatters } from "./scatter.ts";
export { splitReduction } from "./splitreduce.ts";
