// The classes of methods under `Tensor.autocast`, by what becomes of their operands of float32 and narrower
// types. They follow torch.autocast's lists for CUDA; sums, means and variances are float32 here as well.
// Methods that are not listed take operands as they are, and promote them: what batch norm gives has the type
// of its input.

export type AutocastClass = "narrow" | "float32";

const METHODS: Readonly<Record<AutocastClass, string>> = {
  // sums of products: much work for each element that is read, and float32 holds the running sum
  narrow: `
    dot matmul mm bmm mv vdot inner addmm addmv addbmm baddbmm addr tensordot chainMatmul multiDot einsum
    linear conv1d conv2d conv3d convTranspose1d convTranspose2d convTranspose3d
    scaledDotProductAttention prelu`,
  // what overflows, cancels, or adds up many terms
  float32: `
    pow floatPower square hypot reciprocal rsqrt
    exp exp2 expm1 log log2 log10 log1p logaddexp logaddexp2 logsumexp logcumsumexp logit xlogy
    tan sinh cosh asin acos acosh atanh erfinv lgamma digamma polygamma mvlgamma
    sum mean var std prod cumsum cumprod nansum nanmean varMean stdMean trapezoid trace
    softmax logSoftmax softmin softplus logsigmoid
    layerNorm groupNorm rmsNorm
    vectorNorm matrixNorm linalgNorm norm normalize dist cdist pairwiseDistance cosineSimilarity
    solve solveTriangular inverse inv pinv lstsq det slogdet logdet matrixPower matrixRank
    cholesky qr svd svdvals eigh eigvalsh
    crossEntropy nllLoss sparseCategoricalCrossentropy
    binaryCrossEntropy bceWithLogits binaryCrossEntropyWithLogits
    mseLoss l1Loss smoothL1Loss huberLoss klDiv poissonNllLoss gaussianNllLoss
    hingeEmbeddingLoss marginRankingLoss tripletMarginLoss cosineEmbeddingLoss softMarginLoss
    multiMarginLoss multilabelMarginLoss multilabelSoftMarginLoss`,
};

/** The class of each method that has one. */
export const CLASSES: ReadonlyMap<string, AutocastClass> = new Map(
  (Object.keys(METHODS) as AutocastClass[]).flatMap((name) =>
    [...METHODS[name].matchAll(/\w+/g)].map(([method]) => [method, name] as const),
  ),
);
