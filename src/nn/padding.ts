// Padding of the last dims as layers: by zeros, a value, the mirror image, the edge or the other end. In: one
// amount for all sides, or before and after for each dim, the last dim first, as in torch.

import { ArgumentError } from "../errors.ts";
import { type PadMode, pad } from "../tensor/movement/arrange.ts";
import type { Tensor } from "../tensor/tensor.ts";

/** One amount for all sides, or two for each dim, the last dim first. */
export type Padding = number | readonly number[];

abstract class Pad {
  readonly padding: readonly number[];
  constructor(padding: Padding, dims: number) {
    const sides = typeof padding === "number" ? new Array<number>(2 * dims).fill(padding) : padding;
    if (sides.length !== 2 * dims || !sides.every(Number.isInteger)) {
      throw new ArgumentError(
        `${new.target.name}: padding is [${String(padding)}], expected an integer, or ${2 * dims}: before and after ` +
          "for each dim, the last dim first",
      );
    }
    this.padding = sides;
  }
  protected padded(x: Tensor, mode: PadMode, value = 0): Tensor {
    return pad(x, this.padding, mode, value);
  }
}
/**
 * Zeros around the last dim.
 * @example
 * new nn.ZeroPad1d(1).forward(Tensor.ones(1, 1, 4)).shape // => [1, 1, 6]
 */
export class ZeroPad1d extends Pad {
  static override readonly name: string = "ZeroPad1d";
  constructor(padding: Padding) {
    super(padding, 1);
  }
  forward(x: Tensor): Tensor {
    return this.padded(x, "constant");
  }
}
/**
 * Zeros around the last two dims.
 * @example
 * new nn.ZeroPad2d(1).forward(Tensor.ones(1, 1, 4, 4)).shape // => [1, 1, 6, 6]
 */
export class ZeroPad2d extends Pad {
  static override readonly name: string = "ZeroPad2d";
  constructor(padding: Padding) {
    super(padding, 2);
  }
  forward(x: Tensor): Tensor {
    return this.padded(x, "constant");
  }
}
/**
 * Zeros around the last three dims.
 * @example
 * new nn.ZeroPad3d(1).forward(Tensor.ones(1, 1, 4, 4, 4)).shape // => [1, 1, 6, 6, 6]
 */
export class ZeroPad3d extends Pad {
  static override readonly name: string = "ZeroPad3d";
  constructor(padding: Padding) {
    super(padding, 3);
  }
  forward(x: Tensor): Tensor {
    return this.padded(x, "constant");
  }
}
/**
 * A value around the last dim.
 * @example
 * new nn.ConstantPad1d(1, 0.5).forward(Tensor.ones(1, 1, 4)).shape // => [1, 1, 6]
 */
export class ConstantPad1d extends Pad {
  static override readonly name: string = "ConstantPad1d";
  readonly value: number;
  constructor(padding: Padding, value: number) {
    super(padding, 1);
    this.value = value;
  }
  forward(x: Tensor): Tensor {
    return this.padded(x, "constant", this.value);
  }
}
/**
 * A value around the last two dims.
 * @example
 * new nn.ConstantPad2d(1, 0.5).forward(Tensor.ones(1, 1, 4, 4)).shape // => [1, 1, 6, 6]
 */
export class ConstantPad2d extends Pad {
  static override readonly name: string = "ConstantPad2d";
  readonly value: number;
  constructor(padding: Padding, value: number) {
    super(padding, 2);
    this.value = value;
  }
  forward(x: Tensor): Tensor {
    return this.padded(x, "constant", this.value);
  }
}
/**
 * A value around the last three dims.
 * @example
 * new nn.ConstantPad3d(1, 0.5).forward(Tensor.ones(1, 1, 4, 4, 4)).shape // => [1, 1, 6, 6, 6]
 */
export class ConstantPad3d extends Pad {
  static override readonly name: string = "ConstantPad3d";
  readonly value: number;
  constructor(padding: Padding, value: number) {
    super(padding, 3);
    this.value = value;
  }
  forward(x: Tensor): Tensor {
    return this.padded(x, "constant", this.value);
  }
}
/**
 * The mirror image around the last dim.
 * @example
 * new nn.ReflectionPad1d(1).forward(Tensor.ones(1, 1, 4)).shape // => [1, 1, 6]
 */
export class ReflectionPad1d extends Pad {
  static override readonly name: string = "ReflectionPad1d";
  constructor(padding: Padding) {
    super(padding, 1);
  }
  forward(x: Tensor): Tensor {
    return this.padded(x, "reflect");
  }
}
/**
 * The mirror image around the last two dims.
 * @example
 * new nn.ReflectionPad2d(1).forward(Tensor.ones(1, 1, 4, 4)).shape // => [1, 1, 6, 6]
 */
export class ReflectionPad2d extends Pad {
  static override readonly name: string = "ReflectionPad2d";
  constructor(padding: Padding) {
    super(padding, 2);
  }
  forward(x: Tensor): Tensor {
    return this.padded(x, "reflect");
  }
}
/**
 * The mirror image around the last three dims.
 * @example
 * new nn.ReflectionPad3d(1).forward(Tensor.ones(1, 1, 4, 4, 4)).shape // => [1, 1, 6, 6, 6]
 */
export class ReflectionPad3d extends Pad {
  static override readonly name: string = "ReflectionPad3d";
  constructor(padding: Padding) {
    super(padding, 3);
  }
  forward(x: Tensor): Tensor {
    return this.padded(x, "reflect");
  }
}
/**
 * The edge repeated around the last dim.
 * @example
 * new nn.ReplicationPad1d(1).forward(Tensor.ones(1, 1, 4)).shape // => [1, 1, 6]
 */
export class ReplicationPad1d extends Pad {
  static override readonly name: string = "ReplicationPad1d";
  constructor(padding: Padding) {
    super(padding, 1);
  }
  forward(x: Tensor): Tensor {
    return this.padded(x, "replicate");
  }
}
/**
 * The edge repeated around the last two dims.
 * @example
 * new nn.ReplicationPad2d(1).forward(Tensor.ones(1, 1, 4, 4)).shape // => [1, 1, 6, 6]
 */
export class ReplicationPad2d extends Pad {
  static override readonly name: string = "ReplicationPad2d";
  constructor(padding: Padding) {
    super(padding, 2);
  }
  forward(x: Tensor): Tensor {
    return this.padded(x, "replicate");
  }
}
/**
 * The edge repeated around the last three dims.
 * @example
 * new nn.ReplicationPad3d(1).forward(Tensor.ones(1, 1, 4, 4, 4)).shape // => [1, 1, 6, 6, 6]
 */
export class ReplicationPad3d extends Pad {
  static override readonly name: string = "ReplicationPad3d";
  constructor(padding: Padding) {
    super(padding, 3);
  }
  forward(x: Tensor): Tensor {
    return this.padded(x, "replicate");
  }
}
/**
 * The other end around the last dim.
 * @example
 * new nn.CircularPad1d(1).forward(Tensor.ones(1, 1, 4)).shape // => [1, 1, 6]
 */
export class CircularPad1d extends Pad {
  static override readonly name: string = "CircularPad1d";
  constructor(padding: Padding) {
    super(padding, 1);
  }
  forward(x: Tensor): Tensor {
    return this.padded(x, "circular");
  }
}
/**
 * The other end around the last two dims.
 * @example
 * new nn.CircularPad2d(1).forward(Tensor.ones(1, 1, 4, 4)).shape // => [1, 1, 6, 6]
 */
export class CircularPad2d extends Pad {
  static override readonly name: string = "CircularPad2d";
  constructor(padding: Padding) {
    super(padding, 2);
  }
  forward(x: Tensor): Tensor {
    return this.padded(x, "circular");
  }
}
/**
 * The other end around the last three dims.
 * @example
 * new nn.CircularPad3d(1).forward(Tensor.ones(1, 1, 4, 4, 4)).shape // => [1, 1, 6, 6, 6]
 */
export class CircularPad3d extends Pad {
  static override readonly name: string = "CircularPad3d";
  constructor(padding: Padding) {
    super(padding, 3);
  }
  forward(x: Tensor): Tensor {
    return this.padded(x, "circular");
  }
}
