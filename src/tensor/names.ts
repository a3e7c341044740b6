// torch's other names for what is there already: casts by the name of the type, sizes as methods, long names of
// operators, and `Tensor.where`. Nothing here computes anything itself.

import type { Element } from "./base.ts";
import type { PerDim } from "./conv.ts";
import type { WindowOptions } from "./image.ts";
import { some } from "./join.ts";
import type { Rounded, Scaled } from "./math.ts";
import { requireTensors } from "./movement.ts";
import { NeuralTensor } from "./neural.ts";

export abstract class NameTensor extends NeuralTensor {
  // ---- types ----

  /**
   * The values as float32.
   * @example
   * new Tensor([1, 2]).float().dtype.name // => "float32"
   */
  float(): this {
    return this.cast("float32");
  }
  /**
   * The values as float64.
   * @example
   * new Tensor([1, 2]).double().dtype.name // => "float64"
   */
  double(): this {
    return this.cast("float64");
  }
  /**
   * The values as float16.
   * @example
   * new Tensor([1, 2]).half().dtype.name // => "float16"
   */
  half(): this {
    return this.cast("float16");
  }
  /**
   * The values as bfloat16.
   * @example
   * new Tensor([1, 2]).bfloat16().dtype.name // => "bfloat16"
   */
  bfloat16(): this {
    return this.cast("bfloat16");
  }
  /**
   * The values as int32, cut towards zero.
   * @example
   * await new Tensor([1.7, -1.7]).int().tolist() // => [1, -1]
   */
  int(): this {
    return this.cast("int32");
  }
  /**
   * The values as int64, cut towards zero; read as bigints.
   * @example
   * await new Tensor([1.7, -1.7]).long().tolist() // => [1n, -1n]
   */
  long(): this {
    return this.cast("int64");
  }
  /**
   * Whether each element is not 0.
   * @example
   * await new Tensor([0, 2]).bool().tolist() // => [false, true]
   */
  bool(): this {
    return this.cast("bool");
  }

  // ---- sizes ----

  /**
   * How many elements: `size` as a method.
   * @example
   * new Tensor([[1, 2, 3]]).numel() // => 3
   */
  numel(): number {
    return this.size;
  }
  /**
   * How many dims: `ndim` as a method.
   * @example
   * new Tensor([[1, 2, 3]]).dim() // => 2
   */
  dim(): number {
    return this.ndim;
  }

  // ---- operators ----

  /**
   * Another name for `clamp`.
   * @example
   * await new Tensor([1, 5, 9]).clip(2, 6).tolist() // => [2, 5, 6]
   */
  clip(min?: this | Element | null, max?: this | Element | null): this {
    return this.clamp(min, max);
  }
  /**
   * Another name for `abs`.
   * @example
   * await new Tensor([-1, 5]).absolute().tolist() // => [1, 5]
   */
  absolute(): this {
    return this.abs();
  }
  /**
   * Another name for `neg`.
   * @example
   * await new Tensor([-1, 5]).negative().tolist() // => [1, -5]
   */
  negative(): this {
    return this.neg();
  }
  /**
   * Another name for `sub`.
   * @example
   * await new Tensor([5, 7]).subtract(2).tolist() // => [3, 5]
   */
  subtract(x: this | Element, scaled: Scaled = {}): this {
    return this.sub(x, scaled);
  }
  /**
   * Another name for `mul`.
   * @example
   * await new Tensor([1, 2]).multiply(3).tolist() // => [3, 6]
   */
  multiply(x: this | Element): this {
    return this.mul(x);
  }
  /**
   * Another name for `div`.
   * @example
   * await new Tensor([3, 6]).divide(2).tolist() // => [1.5, 3]
   */
  divide(x: this | Element, rounded: Rounded = {}): this {
    return this.div(x, rounded);
  }
  /**
   * Another name for `div`.
   * @example
   * await new Tensor([3, 6]).trueDivide(2).tolist() // => [1.5, 3]
   */
  trueDivide(x: this | Element): this {
    return this.div(x);
  }
  /**
   * Another name for `gt`.
   * @example
   * await new Tensor([1, 3]).greater(2).tolist() // => [false, true]
   */
  greater(x: this | Element): this {
    return this.gt(x);
  }
  /**
   * Another name for `ge`.
   * @example
   * await new Tensor([1, 3]).greaterEqual(3).tolist() // => [false, true]
   */
  greaterEqual(x: this | Element): this {
    return this.ge(x);
  }
  /**
   * Another name for `lt`.
   * @example
   * await new Tensor([1, 3]).less(2).tolist() // => [true, false]
   */
  less(x: this | Element): this {
    return this.lt(x);
  }
  /**
   * Another name for `le`.
   * @example
   * await new Tensor([1, 3]).lessEqual(1).tolist() // => [true, false]
   */
  lessEqual(x: this | Element): this {
    return this.le(x);
  }
  /**
   * Another name for `ne`.
   * @example
   * await new Tensor([1, 3]).notEqual(1).tolist() // => [false, true]
   */
  notEqual(x: this | Element): this {
    return this.ne(x);
  }

  /**
   * torch.nn.functional.fold: another name for `imFold`. Its unfold is `imUnfold`.
   * @example
   * await Tensor.ones(1, 4, 4).fold([3, 3], 2).tolist() // => [[[[1, 2, 1], [2, 4, 2], [1, 2, 1]]]]
   */
  fold(outputSize: PerDim, kernelSize: PerDim, options: WindowOptions = {}): this {
    return this.imFold(outputSize, kernelSize, options);
  }

  // ---- functions ----

  /**
   * torch's form of `condition.where(x, y)`.
   * @example
   * await Tensor.where(new Tensor([true, false]), 1, new Tensor([7, 8])).tolist() // => [1, 8]
   */
  static where<T extends NameTensor>(condition: T, x: T | Element, y: T | Element): T {
    requireTensors("where", { condition });
    return condition.where(x, y);
  }
  /**
   * torch's other name for `Tensor.cat`.
   * @example
   * await Tensor.concat([new Tensor([1, 2]), new Tensor([3])]).tolist() // => [1, 2, 3]
   */
  static concat<T extends NameTensor>(tensors: readonly T[], dim = 0): T {
    return NameTensor.cat(some("concat", tensors), dim);
  }
}
