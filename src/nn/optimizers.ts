// The names of `nn.optim`.

export * from "./adaptive.ts";
export {
  Adam,
  type AdamOptions,
  AdamW,
  type AmsgradOptions,
  type CommonOptions,
  type Group,
  type Model,
  Moments,
  Optimizer,
  ParamGroup,
  type Params,
  SGD,
  type SGDOptions,
  type State,
  type Update,
} from "./optim.ts";
export * from "./schedules.ts";
export * from "./trust.ts";
