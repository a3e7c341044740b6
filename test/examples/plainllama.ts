// Llama once more, with plain arrays and loops and nothing of gradloom: what examples/llama.ts is held
// against. It reads the file by itself, and works out the angles of the places instead of reading them.

type Matrix = { readonly at: number; readonly rows: number; readonly cols: number };

/**
 * The first `count` tokens that the model of a llama2.c file finds likeliest, and the
 * least by which one of them led.
 */
export function plainLlama(file: ArrayBuffer, count: number): { tokens: number[]; margin: number } {
  const head = new DataView(file);
  const [dim, hidden, depth, heads] = [0, 4, 8, 12].map((at) => head.getInt32(at, true)) as [
    number,
    number,
    number,
    number,
  ];
  const vocab = head.getInt32(20, true);
  const w = new Float32Array(file, 28, Math.floor((file.byteLength - 28) / 4));
  const size = dim / heads;

  // where things begin, in the order of the file
  const embed = 0;
  const attNorm = embed + vocab * dim;
  const wq = attNorm + depth * dim;
  const wk = wq + depth * dim * dim;
  const wv = wk + depth * dim * dim;
  const wo = wv + depth * dim * dim;
  const ffnNorm = wo + depth * dim * dim;
  const w1 = ffnNorm + depth * dim;
  const w2 = w1 + depth * dim * hidden;
  const w3 = w2 + depth * dim * hidden;
  const lastNorm = w3 + depth * dim * hidden;

  const times = (m: Matrix, x: Float64Array): Float64Array => {
    const y = new Float64Array(m.rows);
    for (let r = 0; r < m.rows; r++) {
      let sum = 0;
      for (let c = 0, at = m.at + r * m.cols; c < m.cols; c++, at++) sum += w[at]! * x[c]!;
      y[r] = sum;
    }
    return y;
  };
  const square = (start: number, layer: number): Matrix => {
    return { at: start + layer * dim * dim, rows: dim, cols: dim };
  };
  const norm = (x: Float64Array, at: number): Float64Array => {
    let sum = 0;
    for (const v of x) sum += v * v;
    const scale = 1 / Math.sqrt(sum / dim + 1e-5);
    return x.map((v, i) => v * scale * w[at + i]!);
  };
  const rotate = (x: Float64Array, place: number): void => {
    for (let i = 0; i < dim; i += 2) {
      const angle = place / 10000 ** ((i % size) / size);
      const [a, b, cos, sin] = [x[i]!, x[i + 1]!, Math.cos(angle), Math.sin(angle)];
      x[i] = a * cos - b * sin;
      x[i + 1] = a * sin + b * cos;
    }
  };

  const keys: Float64Array[][] = Array.from({ length: depth }, () => []);
  const values: Float64Array[][] = Array.from({ length: depth }, () => []);
  const attend = (q: Float64Array, layer: number): Float64Array => {
    const out = new Float64Array(dim);
    for (let h = 0; h < dim; h += size) {
      const scores = keys[layer]!.map((k) => {
        let sum = 0;
        for (let i = h; i < h + size; i++) sum += q[i]! * k[i]!;
        return sum / Math.sqrt(size);
      });
      const top = Math.max(...scores);
      const weights = scores.map((s) => Math.exp(s - top));
      const total = weights.reduce((a, b) => a + b, 0);
      for (const [t, v] of values[layer]!.entries()) {
        for (let i = h; i < h + size; i++) out[i]! += (weights[t]! / total) * v[i]!;
      }
    }
    return out;
  };

  const tokens: number[] = [];
  let margin = Number.POSITIVE_INFINITY;
  for (let place = 0, token = 1; place < count; place++) {
    const x = Float64Array.from(w.subarray(embed + token * dim, embed + (token + 1) * dim));
    const add = (y: Float64Array): void => {
      for (let i = 0; i < dim; i++) x[i]! += y[i]!;
    };
    for (let l = 0; l < depth; l++) {
      const a = norm(x, attNorm + l * dim);
      const [q, k] = [times(square(wq, l), a), times(square(wk, l), a)];
      rotate(q, place);
      rotate(k, place);
      keys[l]!.push(k);
      values[l]!.push(times(square(wv, l), a));
      add(times(square(wo, l), attend(q, l)));
      const f = norm(x, ffnNorm + l * dim);
      const gate = times({ at: w1 + l * dim * hidden, rows: hidden, cols: dim }, f);
      const up = times({ at: w3 + l * dim * hidden, rows: hidden, cols: dim }, f);
      const inner = gate.map((g, i) => (g / (1 + Math.exp(-g))) * up[i]!);
      add(times({ at: w2 + l * dim * hidden, rows: dim, cols: hidden }, inner));
    }
    const logits = times({ at: embed, rows: vocab, cols: dim }, norm(x, lastNorm));
    token = logits.reduce((best, v, i) => (v > logits[best]! ? i : best), 0);
    const second = logits.reduce(
      (most, v, i) => (i !== token && v > most ? v : most),
      Number.NEGATIVE_INFINITY,
    );
    margin = Math.min(margin, logits[token]! - second);
    tokens.push(token);
  }
  return { tokens, margin };
}
