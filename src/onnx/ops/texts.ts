// Strings live on the host, and ops that only move elements need no second form for them: each string is
// replaced by its place in a list, the op moves the places, and the result is read and looked up.

import { TYPES } from "../elements.ts";
import { type Any, SequenceValue, TensorValue } from "../values.ts";
import { type Call, type Outputs, settled, type Versions } from "./op.ts";

/** The op, for strings too. */
export const onTexts = (list: Versions): Versions =>
  list.map(([since, op]) => [
    since,
    { ...op, run: (call) => (hasTexts(call) ? moved(call, op.run) : op.run(call)) },
  ]);

const hasTexts = (call: Call): boolean => call.inputs.some((x) => x instanceof TensorValue && x.isText);

async function moved(call: Call, run: (call: Call) => Outputs | PromiseLike<Outputs>): Promise<Outputs> {
  // what is filled in (padding) is place 0: the empty string
  const all = [""];
  const inputs = call.inputs.map((input) => {
    if (!(input instanceof TensorValue) || !input.isText) return input;
    const data = input.texts.map((_, i) => all.length + i);
    all.push(...input.texts);
    return TensorValue.ofHost({ type: TYPES.int32, shape: input.shape, data }, call.device);
  });
  const inner = call.withInputs(inputs);
  const back = async (value: Any | undefined): Promise<Any | undefined> => {
    if (value instanceof SequenceValue)
      return new SequenceValue((await Promise.all(value.items.map(back))) as Any[]);
    if (!(value instanceof TensorValue) || value.type !== TYPES.int32) return value;
    const { data } = await call.env.read(value);
    return TensorValue.ofTexts(
      { shape: value.shape, data: Array.from(data, (i) => all[Number(i)] as string) },
      call.sources,
    );
  };
  return Promise.all(settled(inner, await run(inner)).map(back));
}
