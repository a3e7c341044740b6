// Captures of a model with symbolic sizes. In: the inputs of a run whose sizes were not captured as they are.
// Out: what the model gives, from a capture that serves all sizes of its form, or nothing: then the sizes are
// new, or the model cannot do without plain numbers, and it runs as it does with fixed sizes.

import { JitError } from "../errors.ts";
import { TinyJit } from "../index.ts";
import type { Variable } from "../shape/symbolic.ts";
import { Tensor } from "../tensor/tensor.ts";
import { newFindings, type RunFindings } from "./execute.ts";
import type { OnnxOutput } from "./session.ts";
import { Decisions, plain, type Shapes, SizeTemplate, seenAs, storedSizes } from "./symbolic.ts";
import { TensorValue } from "./values.ts";

export type TensorValues = ReadonlyMap<string, TensorValue>;
type ModelOutputs = Record<string, OnnxOutput>;
type Execute = (values: TensorValues, findings: RunFindings) => Promise<ModelOutputs>;

/** Forms of inputs that are remembered, captures for them, and captures of one form for other values. */
const MAX_SEEN = 16;
const MAX_CAPTURES = 16;
const MAX_TRIES = 4;

interface Form {
  /** the names and types of the inputs */
  readonly kind: string;
  readonly template: SizeTemplate;
}
interface SizedCapture extends Form {
  readonly jit: (...inputs: Tensor[]) => Promise<ModelOutputs>;
  readonly used: readonly string[];
  readonly decisions: Decisions;
  /** elements of inputs that the graph was made for */
  readonly elements: ReadonlyMap<string, string>;
  /** the inputs of the call that runs: the jit gets only those whose elements are used */
  values: TensorValues;
  last: Promise<unknown>;
  hasRun: boolean;
}

/** Captures of one model that serve more than one size. */
export class SymbolicCaptures {
  readonly #execute: Execute;
  /** The inputs that the graph of the outputs reads. */
  readonly #usedBy: (outputs: readonly Tensor[], values: TensorValues) => string[];
  #seen: Form[] = [];
  #captures: SizedCapture[] = [];
  readonly #tries = new Map<string, number>();

  constructor(execute: Execute, usedBy: (outputs: readonly Tensor[], values: TensorValues) => string[]) {
    this.#execute = execute;
    this.#usedBy = usedBy;
  }

  /** Undefined: there is no capture for these inputs, and none can be made yet. */
  async run(values: TensorValues): Promise<ModelOutputs | undefined> {
    const shapes = [...values.values()].map((v) => v.shape);
    const kind = [...values].map(([name, v]) => `${name}:${v.type.name}`).join();
    const capture = this.#find(kind, shapes, values) ?? (await this.#make(kind, shapes, values));
    if (capture === undefined) return undefined;
    const mine = capture.last.then(() => this.#replay(capture, shapes, values));
    // not the result itself, which nothing here may keep alive
    capture.last = mine.then(
      () => {},
      () => {},
    );
    return mine;
  }

  #find(kind: string, shapes: Shapes, values: TensorValues): SizedCapture | undefined {
    return this.#captures.find((c) => {
      const sizes = c.kind === kind ? c.template.match(shapes) : undefined;
      return sizes !== undefined && c.decisions.allow(sizes) && hasElements(values, c.elements);
    });
  }

  /** A new form is remembered; one that differs from an earlier one in sizes gets a capture. */
  async #make(kind: string, shapes: Shapes, values: TensorValues): Promise<SizedCapture | undefined> {
    const forms = [...this.#captures, ...this.#seen].filter((f) => f.kind === kind);
    const found = forms.map((f) => f.template.joined(shapes)).find((t) => t !== undefined);
    if (found === undefined || found.variables.length === 0) {
      if (found === undefined)
        this.#seen = [{ kind, template: new SizeTemplate(shapes) }, ...this.#seen].slice(0, MAX_SEEN);
      return undefined;
    }
    const key = `${kind}|${found.key}`;
    const tries = this.#tries.get(key) ?? 0;
    if (tries >= MAX_TRIES) return undefined;
    this.#tries.set(key, tries + 1);
    const capture = await this.#tried(kind, found, shapes, values);
    if (capture === undefined) this.#tries.set(key, MAX_TRIES);
    else this.#captures = [capture, ...this.#captures].slice(0, MAX_CAPTURES);
    return capture;
  }

  /** Builds the graph once, to learn whether it can have symbolic sizes, and how large they may be. */
  async #tried(
    kind: string,
    found: SizeTemplate,
    shapes: Shapes,
    values: TensorValues,
  ): Promise<SizedCapture | undefined> {
    const findings = newFindings();
    const trial = new Decisions();
    let outputs: ModelOutputs;
    try {
      const seen = symbolic(values, found, shapes);
      outputs = await trial.during(found.variables, () => this.#execute(seen, findings));
      const tensors = Object.values(outputs).filter((x) => x instanceof Tensor);
      const isTensors = tensors.length === Object.keys(outputs).length;
      if (findings.isDynamic || trial.needsNumbers || !isTensors) return undefined;
      const used = this.#usedBy(tensors, seen);
      const template = found.bounded(shapes, storedSizes(tensors));
      return this.#captureOf({ kind, template }, used, findings, values);
    } catch {
      // an error of the model is told by the run with plain sizes
      return undefined;
    }
  }

  #captureOf(form: Form, used: readonly string[], findings: RunFindings, values: TensorValues): SizedCapture {
    const jit = new TinyJit((...inputs: Tensor[]) => {
      const again = [...capture.values].map(([name, like]) => {
        const tensor = inputs[used.indexOf(name)];
        const value =
          tensor === undefined ? like.withoutElements() : TensorValue.of(tensor, like.type, like.sources);
        return [name, like.isKnown ? value.withHost(() => like.sizes) : value] as const;
      });
      return this.#execute(new Map(again), findings);
    });
    const capture: SizedCapture = {
      ...form,
      jit: jit as unknown as SizedCapture["jit"],
      used,
      decisions: new Decisions(),
      elements: new Map([...findings.specialised].map((name) => [name, elementsOf(values.get(name))])),
      values,
      last: Promise.resolve(),
      hasRun: false,
    };
    return capture;
  }

  /** Undefined: it turned out that the capture does not serve other sizes. */
  async #replay(
    capture: SizedCapture,
    shapes: Shapes,
    values: TensorValues,
  ): Promise<ModelOutputs | undefined> {
    const { template, decisions, used } = capture;
    capture.values = symbolic(values, template, shapes);
    const inputs = used.map((name) => (capture.values.get(name) as TensorValue).tensor);
    try {
      const outputs = await decisions.during(template.variables, () => capture.jit(...inputs));
      capture.hasRun = true;
      if (decisions.needsNumbers) this.#refuse(capture);
      return Object.fromEntries(
        Object.entries(outputs).map(([name, x]) => [name, x instanceof Tensor ? plain(x, inputs) : x]),
      );
    } catch (e) {
      // kernels that this form cannot have are refused the first time; later failures are those of a run
      if (!(e instanceof JitError) && capture.hasRun) throw e;
      this.#refuse(capture);
      return undefined;
    }
  }
  #refuse(capture: SizedCapture): void {
    this.#captures = this.#captures.filter((c) => c !== capture);
    this.#tries.set(`${capture.kind}|${capture.template.key}`, MAX_TRIES);
  }
}

/** Inputs whose sizes are variables, bound to those of these shapes. */
function symbolic(values: TensorValues, template: SizeTemplate, shapes: Shapes): TensorValues {
  const sizes = template.match(shapes) as Map<Variable, number>;
  return new Map(
    [...values].map(
      ([name, v], i) => [name, seenAs(v, template.shapes[i] as readonly number[], sizes)] as const,
    ),
  );
}
const elementsOf = (value: TensorValue | undefined): string =>
  value?.isKnown === true ? Array.from(value.host.data).join() : "?";
const hasElements = (values: TensorValues, wanted: ReadonlyMap<string, string>): boolean =>
  [...wanted].every(([name, elements]) => elementsOf(values.get(name)) === elements);
