// The names of `nn.optim`.

export * from "./optim.ts";
export * from "./schedules.ts";
export * from "./trust.ts";
