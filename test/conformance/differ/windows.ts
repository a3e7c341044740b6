// Random cases of ops with windows and grids: convolutions, pooling, resizing, sampling, regions.

import type { OnnxAttribute } from "gradloom/onnx";
import {
  type CaseDice,
  type CaseMaker,
  floats,
  full,
  type HostData,
  ints,
  list,
  makeCase,
  scalar,
} from "./cases.ts";

/** Padding as numbers, or by a name. */
export const padding = (
  r: CaseDice,
  n: number,
  most: readonly number[],
): Record<string, string | number[]> => {
  const auto = r.pick(["NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID", ""]);
  if (auto === "") return {};
  if (auto !== "NOTSET") return { auto_pad: auto };
  return { pads: list(2 * n, (i) => r.int(0, most[i % n] as number)) };
};

const conv: CaseMaker = (r) => {
  const n = r.int(1, 3);
  const group = r.pick([1, 1, 2, 3]);
  const [each, filters] = [r.int(1, 3), r.int(1, 2)];
  const kernel = list(n, () => r.int(1, 3));
  const spatial = list(n, () => r.int(5, 8));
  const attributes = {
    group,
    ...padding(
      r,
      n,
      list(n, () => 3),
    ),
    ...r.maybe({ strides: list(n, () => r.int(1, 3)), kernel_shape: kernel }),
  };
  // a name for the padding goes with dilations in some implementations only
  const dilations = "auto_pad" in attributes ? {} : r.maybe({ dilations: list(n, () => r.int(1, 2)) });
  const bias = r.chance(50) ? r.tensor("float", [group * filters]) : undefined;
  const x = r.tensor("float", [r.int(1, 2), group * each, ...spatial]);
  return makeCase(
    "Conv",
    [x, r.tensor("float", [group * filters, each, ...kernel]), bias],
    { ...attributes, ...dilations },
    { opset: r.pick([7, 11, 22]), slack: 1e-5 },
  );
};

const convTranspose: CaseMaker = (r) => {
  const n = r.int(1, 3);
  const group = r.pick([1, 1, 2]);
  const [each, filters] = [r.int(1, 2), r.int(1, 2)];
  const kernel = list(n, () => r.int(1, 3));
  const spatial = list(n, () => r.int(2, 5));
  const strides = list(n, () => r.int(1, 3));
  const dilations = list(n, () => r.pick([1, 1, 2]));
  const how = r.pick(["pads", "shape", "auto", "auto shape"]);
  const padded: Record<string, OnnxAttribute> =
    how === "pads"
      ? {
          ...r.maybe({ pads: list(2 * n, (i) => r.int(0, Math.floor(((kernel[i % n] as number) - 1) / 2))) }),
        }
      : how === "auto"
        ? { auto_pad: r.pick(["SAME_UPPER", "SAME_LOWER", "VALID"]) }
        : {
            output_shape: list(n, (i) => {
              const whole =
                ((spatial[i] as number) - 1) * (strides[i] as number) +
                ((kernel[i] as number) - 1) * (dilations[i] as number) +
                1;
              return r.int(Math.max(1, whole - 2), whole);
            }),
            ...(how === "auto shape" ? { auto_pad: r.pick(["SAME_UPPER", "SAME_LOWER"]) } : {}),
          };
  const output_padding = list(n, (i) => r.int(0, Math.max(strides[i] as number, dilations[i] as number) - 1));
  const attributes = {
    group,
    strides,
    dilations,
    kernel_shape: kernel,
    ...padded,
    ...(how === "pads" ? r.maybe({ output_padding }) : {}),
  };
  const x = r.tensor("float", [r.int(1, 2), group * each, ...spatial]);
  const bias = r.chance(50) ? r.tensor("float", [group * filters]) : undefined;
  return makeCase(
    "ConvTranspose",
    [x, r.tensor("float", [group * each, filters, ...kernel]), bias],
    attributes,
    { opset: r.pick([7, 11, 22]), slack: 1e-5 },
  );
};

const pool =
  (op: string): CaseMaker =>
  (r) => {
    const n = r.int(1, 3);
    const kernel = list(n, () => r.int(1, 3));
    const spatial = list(n, () => r.int(5, 8));
    const padded = padding(
      r,
      n,
      kernel.map((k) => k - 1),
    );
    const opset = r.pick([8, 10, 11, 19, 22]);
    const strides = r.maybe({ strides: list(n, () => r.int(1, 3)) });
    const hasCeil = op === "LpPool" ? opset >= 18 : opset >= 10;
    const hasDilations =
      (op === "MaxPool" ? opset >= 10 : op === "AveragePool" ? opset >= 19 : opset >= 18) &&
      !("auto_pad" in padded);
    const attributes = {
      kernel_shape: kernel,
      ...padded,
      ...strides,
      ...(hasCeil ? r.maybe({ ceil_mode: r.int(0, 1) }) : {}),
      ...(hasDilations ? r.maybe({ dilations: list(n, () => r.int(1, 2)) }) : {}),
      ...(op === "AveragePool" ? r.maybe({ count_include_pad: r.int(0, 1) }) : {}),
      ...(op === "LpPool" ? r.maybe({ p: r.int(1, 3) }) : {}),
      ...(op === "MaxPool" ? r.maybe({ storage_order: r.int(0, 1) }) : {}),
    };
    const x = r.tensor("float", [r.int(1, 2), r.int(1, 2), ...spatial]);
    return makeCase(op, [x], attributes, {
      opset,
      outputs: op === "MaxPool" && r.chance(50) ? 2 : 1,
      slack: 1e-5,
    });
  };

const globalPool: CaseMaker = (r) =>
  makeCase(
    r.pick(["GlobalAveragePool", "GlobalMaxPool"]),
    [r.tensor("float", full(r.shape(3, 5)))],
    {},
    { opset: 9, slack: 1e-5 },
  );

const resize: CaseMaker = (r) => {
  const mode = r.pick(["nearest", "linear", "cubic"]);
  const transformations = [
    "half_pixel",
    "asymmetric",
    "align_corners",
    "pytorch_half_pixel",
    "tf_crop_and_resize",
    "half_pixel_symmetric",
  ];
  const coordinate_transformation_mode = r.pick(transformations);
  const isCrop = coordinate_transformation_mode === "tf_crop_and_resize";
  const opset = coordinate_transformation_mode === "half_pixel_symmetric" ? 19 : r.pick([11, 13, 18, 19]);
  const antialias = opset >= 18 && mode !== "nearest" && !isCrop && r.chance(30) ? 1 : 0;
  const n = mode === "nearest" ? r.int(1, 3) : mode === "linear" ? r.int(1, 2) : 2;
  const shape =
    mode === "nearest" && r.chance(50)
      ? list(n, () => r.int(1, 6))
      : [1, r.int(1, 2), ...list(n, () => r.int(2, 6))];
  const lead = shape.length - n;
  // onnxruntime scales the whole picture, the standard what is cropped
  const bySizes = isCrop || r.chance(50);
  const targets = list(n, () => r.int(1, 9));
  const scales = list(n, () => r.pick([0.5, 0.6, 0.75, 1, 1.5, 2, 2.5, 3, 0.3]));
  const hasAxes = opset >= 18 && r.chance(40);
  const wide = <T>(before: T[], rest: T[]): T[] => (hasAxes ? rest : [...before, ...rest]);
  const ones = list(lead, () => 1);
  const roi = isCrop
    ? floats([
        ...wide(
          list(lead, () => 0),
          list(n, () => r.int(0, 8) / 16),
        ),
        ...wide(
          ones,
          list(n, () => r.int(8, 20) / 16),
        ),
      ])
    : undefined;
  const attributes: Record<string, string | number | number[]> = {
    mode,
    coordinate_transformation_mode,
    ...(mode === "nearest"
      ? r.maybe({ nearest_mode: r.pick(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]) })
      : {}),
    ...(mode === "cubic"
      ? r.maybe({ cubic_coeff_a: r.pick([-0.5, -0.75]), exclude_outside: r.int(0, 1) })
      : {}),
    ...(isCrop ? { extrapolation_value: 10 } : {}),
    ...(antialias ? { antialias } : {}),
    ...(hasAxes ? { axes: list(n, (i) => lead + i) } : {}),
    ...(opset >= 18 && bySizes
      ? r.maybe({ keep_aspect_ratio_policy: r.pick(["stretch", "not_larger", "not_smaller"]) })
      : {}),
  };
  if (isCrop && "keep_aspect_ratio_policy" in attributes) attributes.keep_aspect_ratio_policy = "stretch";
  const policy =
    "keep_aspect_ratio_policy" in attributes && attributes.keep_aspect_ratio_policy !== "stretch";
  const type = mode === "nearest" ? r.pick(["float", "int32", "uint8"]) : "float";
  const x = r.tensor(type, shape);
  // one scale for all dims may not change the first ones
  if (bySizes && (isCrop || !(policy && !hasAxes && lead > 0)))
    return makeCase("Resize", [x, roi, undefined, ints(wide(shape.slice(0, lead), targets))], attributes, {
      opset,
      slack: 1e-4,
    });
  const { keep_aspect_ratio_policy: _, ...rest } = attributes;
  return makeCase(
    "Resize",
    [x, roi ?? (opset < 13 ? floats([]) : undefined), floats(wide(ones, scales))],
    rest,
    { opset, slack: 1e-4, weights: [2] },
  );
};

const gridSample: CaseMaker = (r) => {
  const opset = r.pick([16, 20]);
  const n = opset === 20 ? r.int(2, 3) : 2;
  const names =
    opset === 16
      ? ["bilinear", "nearest", "bicubic"]
      : n === 3
        ? ["linear", "nearest"]
        : ["linear", "nearest", "cubic"];
  const [batch, spatial] = [r.int(1, 2), list(n, () => r.int(2, 5))];
  const grid = r.tensor("float", [batch, ...list(n, () => r.int(1, 4)), n], -2, 2);
  // not on the border between two neighbours
  const data = Array.from(grid.data, (x) => (Number(x) + 0.0037) * 0.83);
  return makeCase(
    "GridSample",
    [r.tensor("float", [batch, r.int(1, 2), ...spatial]), { ...grid, data }],
    r.maybe({
      mode: r.pick(names),
      padding_mode: r.pick(["zeros", "border", "reflection"]),
      align_corners: r.int(0, 1),
    }),
    { opset, slack: 1e-4 },
  );
};

const roiAlign: CaseMaker = (r) => {
  const n = r.int(1, 3);
  const boxes = list(n, () => 0).flatMap(() => {
    const [x, y] = [r.int(0, 8) / 2, r.int(0, 8) / 2];
    return [x, y, x + r.int(1, 10) / 2, y + r.int(1, 10) / 2];
  });
  const opset = r.pick([10, 16]);
  const attributes = r.maybe({
    output_height: r.int(1, 3),
    output_width: r.int(1, 3),
    sampling_ratio: r.int(0, 3),
    spatial_scale: r.pick([0.5, 1, 1.5]),
    mode: r.pick(["avg", "max"]),
    ...(opset === 16 ? { coordinate_transformation_mode: r.pick(["half_pixel", "output_half_pixel"]) } : {}),
  });
  return makeCase(
    "RoiAlign",
    [
      r.tensor("float", [2, r.int(1, 2), 7, 6]),
      { ...floats(boxes), shape: [n, 4] },
      ints(list(n, () => r.int(0, 1))),
    ],
    attributes,
    { opset, slack: 1e-4 },
  );
};

const nonMaxSuppression: CaseMaker = (r) => {
  const [batch, n, classes] = [r.int(1, 2), r.int(1, 6), r.int(1, 2)];
  const boxes = r.tensor("float", [batch, n, 4], 0, 2);
  const scores = {
    type: "float",
    shape: [batch, classes, n],
    data: r.shuffled(list(batch * classes * n, (i) => (i + 1) / 32)),
  };
  const threshold = (): HostData | undefined =>
    r.chance(70) ? { ...floats([r.int(1, 9) / 10]), shape: [] } : undefined;
  return makeCase(
    "NonMaxSuppression",
    [boxes, scores, r.chance(85) ? scalar(r.int(0, 4)) : undefined, threshold(), threshold()],
    r.maybe({ center_point_box: r.int(0, 1) }),
    { opset: r.pick([10, 11]) },
  );
};

export const WINDOWS: Readonly<Record<string, CaseMaker>> = {
  Conv: conv,
  ConvTranspose: convTranspose,
  MaxPool: pool("MaxPool"),
  AveragePool: pool("AveragePool"),
  LpPool: pool("LpPool"),
  GlobalPool: globalPool,
  Resize: resize,
  GridSample: gridSample,
  RoiAlign: roiAlign,
  NonMaxSuppression: nonMaxSuppression,
  Col2Im: (r) => {
    const [kernel, strides, dilations] = [
      [r.int(1, 3), r.int(1, 3)],
      [r.int(1, 2), r.int(1, 2)],
      [1, r.int(1, 2)],
    ];
    const pads = list(4, () => r.int(0, 1));
    const image = [r.int(5, 7), r.int(5, 7)];
    const blocks = image.map(
      (n, i) =>
        Math.floor(
          (n +
            (pads[i] as number) +
            (pads[i + 2] as number) -
            ((kernel[i] as number) - 1) * (dilations[i] as number) -
            1) /
            (strides[i] as number),
        ) + 1,
    );
    const [k, c] = [(kernel[0] as number) * (kernel[1] as number), r.int(1, 2)];
    return makeCase(
      "Col2Im",
      [
        r.tensor("float", [r.int(1, 2), c * k, (blocks[0] as number) * (blocks[1] as number)]),
        ints(image),
        ints(kernel),
      ],
      { pads, strides, dilations },
      { opset: 18, slack: 1e-5 },
    );
  },
  AffineGrid: (r) => {
    const n = r.int(2, 3);
    const batch = r.int(1, 2);
    return makeCase(
      "AffineGrid",
      [r.tensor("float", [batch, n, n + 1], -1, 1), ints([batch, 1, ...list(n, () => r.int(2, 4))])],
      r.maybe({ align_corners: r.int(0, 1) }),
      { opset: 20, slack: 1e-5 },
    );
  },
  MaxRoiPool: (r) => {
    const n = r.int(1, 3);
    const rois = list(n, () => 0).flatMap(() => {
      const [x, y] = [r.int(0, 4), r.int(0, 4)];
      return [r.int(0, 1), x, y, x + r.int(0, 5), y + r.int(0, 5)];
    });
    return makeCase(
      "MaxRoiPool",
      [r.tensor("float", [2, 2, 6, 7]), { ...floats(rois), shape: [n, 5] }],
      { pooled_shape: [r.int(1, 3), r.int(1, 3)], ...r.maybe({ spatial_scale: r.pick([0.5, 1]) }) },
      { opset: 1 + 6 },
    );
  },
};
