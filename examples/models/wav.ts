// Sound files: a WAV file with any number of channels, of bytes or floats, becomes samples of one channel
// from -1 to 1, and samples of any rate become samples of another.

/** One channel of sound. */
export interface Sound {
  /** samples a second */
  readonly rate: number;
  readonly samples: Float32Array;
}

type ReadSample = (view: DataView, at: number) => number;
/** What a sample of so many bits is: bytes are unsigned, longer ones signed. */
const INTEGERS: Readonly<Record<number, ReadSample>> = {
  8: (view, at) => (view.getUint8(at) - 128) / 2 ** 7,
  16: (view, at) => view.getInt16(at, true) / 2 ** 15,
  24: (view, at) => ((view.getInt8(at + 2) << 16) | view.getUint16(at, true)) / 2 ** 23,
  32: (view, at) => view.getInt32(at, true) / 2 ** 31,
};
const FLOATS: Readonly<Record<number, ReadSample>> = {
  32: (view, at) => view.getFloat32(at, true),
  64: (view, at) => view.getFloat64(at, true),
};
const [PCM, FLOAT, EXTENSIBLE] = [1, 3, 0xfffe];

/** Reads a WAV file; several channels become their mean. */
export function readWav(file: Uint8Array): Sound {
  const view = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const name = (at: number): string => String.fromCharCode(...file.subarray(at, at + 4));
  if (file.byteLength < 12 || name(0) !== "RIFF" || name(8) !== "WAVE")
    throw new Error("this is not a WAV file: it does not begin with RIFF and WAVE");
  let format: { channels: number; rate: number; bytes: number; read: ReadSample } | undefined;
  for (let at = 12; at + 8 <= file.byteLength; ) {
    const [chunk, said] = [name(at), view.getUint32(at + 4, true)];
    // the length of what was recorded to a pipe is a guess: the file ends where it ends
    const [start, length] = [at + 8, Math.min(said, file.byteLength - at - 8)];
    if (chunk === "fmt ") format = formatOf(view, start, length);
    if (chunk === "data") {
      if (format === undefined) throw new Error("the WAV file has sound before it says of what format");
      const { channels, rate, bytes, read } = format;
      const samples = new Float32Array(Math.floor(length / (bytes * channels)));
      for (let i = 0; i < samples.length; i++) {
        let sum = 0;
        for (let c = 0; c < channels; c++) sum += read(view, start + (i * channels + c) * bytes);
        samples[i] = sum / channels;
      }
      return { rate, samples };
    }
    at = start + length + (length % 2);
  }
  throw new Error("the WAV file has no sound in it");
}

function formatOf(view: DataView, at: number, length: number) {
  if (length < 16) throw new Error("the WAV file is truncated");
  const [said, channels, rate] = [
    view.getUint16(at, true),
    view.getUint16(at + 2, true),
    view.getUint32(at + 4, true),
  ];
  const bits = view.getUint16(at + 14, true);
  const kind = said === EXTENSIBLE && length >= 26 ? view.getUint16(at + 24, true) : said;
  const read = kind === PCM ? INTEGERS[bits] : kind === FLOAT ? FLOATS[bits] : undefined;
  if (read === undefined || channels === 0 || rate === 0) {
    throw new Error(
      `a WAV file of format ${kind} with ${bits} bits, ${channels} channels and ${rate} samples a second is not ` +
        "read: expected integers of 8, 16, 24 or 32 bits, or floats",
    );
  }
  return { channels, rate, bytes: bits / 8, read };
}

// ---- another rate ----

/** Zero crossings of the sinc on each side: more are sharper at the limit of what can be heard. */
const CROSSINGS = 16;

/**
 * The same sound with another number of samples a second. Each sample is a sum over its neighbours, weighted
 * by a sinc under a Hann window; what is too high for the new rate is left out.
 */
export function resample({ rate, samples }: Sound, to: number): Float32Array {
  if (rate === to) return samples;
  const divisor = gcd(rate, to);
  const [steps, phases] = [rate / divisor, to / divisor];
  const cutoff = Math.min(1, to / rate);
  const reach = Math.ceil(CROSSINGS / cutoff);
  // the weights only depend on where between two samples the new one is
  const weights = Array.from({ length: phases }, (_, phase) => weightsOf(phase / phases, cutoff, reach));
  const out = new Float32Array(Math.floor((samples.length * to) / rate));
  for (let i = 0; i < out.length; i++) {
    const at = Math.floor((i * steps) / phases);
    const taps = weights[(i * steps) % phases] as Float64Array;
    let sum = 0;
    for (let k = 0; k < taps.length; k++) sum += (samples[at + k - reach] ?? 0) * (taps[k] as number);
    out[i] = sum;
  }
  return out;
}

function weightsOf(offset: number, cutoff: number, reach: number): Float64Array {
  const taps = Float64Array.from({ length: 2 * reach + 2 }, (_, k) => {
    const x = (k - reach - offset) * cutoff;
    if (Math.abs(x) >= CROSSINGS) return 0;
    const sinc = x === 0 ? 1 : Math.sin(Math.PI * x) / (Math.PI * x);
    return sinc * 0.5 * (1 + Math.cos((Math.PI * x) / CROSSINGS));
  });
  // a constant stays what it is, whatever the phase
  const sum = taps.reduce((a, b) => a + b, 0);
  return taps.map((tap) => tap / sum);
}
const gcd = (a: number, b: number): number => (b === 0 ? a : gcd(b, a % b));
