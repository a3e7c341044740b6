// What Whisper hears: the loudness of 80 bands of pitch in each hundredth of a second, as logarithms. In:
// 30 seconds of sound. Out: a tensor [1, 80, 3000]. The spectrum is a Fourier transform of tensors.

import { Tensor } from "gradloom";

export const RATE = 16_000;
/** Whisper listens to 30 seconds at once. */
export const WINDOW = 30 * RATE;
const [FRAME, HOP, BANDS] = [400, 160, 80];
const BINS = FRAME / 2 + 1;

/** Pitch as Slaney defines it: linear up to 1000 Hz, logarithmic above. */
const [LINEAR, KNEE, STEP] = [200 / 3, 1000, Math.log(6.4) / 27];
const pitchOf = (hertz: number): number =>
  hertz < KNEE ? hertz / LINEAR : KNEE / LINEAR + Math.log(hertz / KNEE) / STEP;
const hertzOf = (pitch: number): number =>
  pitch < KNEE / LINEAR ? pitch * LINEAR : KNEE * Math.exp((pitch - KNEE / LINEAR) * STEP);

/** How much of each frequency belongs to each band: triangles of equal area, rows of bands. */
export function melFilters(bands = BANDS, bins = BINS, rate = RATE): Float32Array {
  const top = pitchOf(rate / 2);
  const edges = Array.from({ length: bands + 2 }, (_, i) => hertzOf((top * i) / (bands + 1)));
  const filters = new Float32Array(bands * bins);
  for (let band = 0; band < bands; band++) {
    const [low, middle, high] = edges.slice(band, band + 3) as [number, number, number];
    for (let bin = 0; bin < bins; bin++) {
      const hertz = (bin * rate) / 2 / (bins - 1);
      const slope = Math.min((hertz - low) / (middle - low), (high - hertz) / (high - middle));
      filters[band * bins + bin] = (Math.max(0, slope) * 2) / (high - low);
    }
  }
  return filters;
}

/** The sound with half a frame of itself, mirrored, at both ends: frames are centred on their times. */
function mirrored(samples: Float32Array, length: number): Float32Array {
  const [half, padded] = [FRAME / 2, new Float32Array(length + FRAME)];
  padded.set(samples.subarray(0, length), half);
  for (let i = 1; i <= half; i++) {
    padded[half - i] = padded[half + i] as number;
    padded[half + length - 1 + i] = padded[half + length - 1 - i] as number;
  }
  return padded;
}

/** The rows of a matrix that turns a frame into its cosines and sines, with the Hann window in it. */
function fourier(): Float32Array {
  const basis = new Float32Array(FRAME * 2 * BINS);
  for (let i = 0; i < FRAME; i++) {
    const hann = 0.5 - 0.5 * Math.cos((2 * Math.PI * i) / FRAME);
    for (let bin = 0; bin < BINS; bin++) {
      const angle = (2 * Math.PI * ((i * bin) % FRAME)) / FRAME;
      basis[i * 2 * BINS + bin] = hann * Math.cos(angle);
      basis[i * 2 * BINS + BINS + bin] = hann * Math.sin(angle);
    }
  }
  return basis;
}

let tables: { basis: Tensor; filters: Tensor; device: string } | undefined;

/** The log-mel spectrogram of at most 30 seconds at 16 kHz; shorter sound is followed by silence. */
export function logMel(samples: Float32Array): Tensor {
  const sound = new Tensor(mirrored(samples, WINDOW));
  if (tables?.device !== sound.device) {
    const basis = new Tensor(fourier()).reshape(FRAME, 2 * BINS);
    const filters = new Tensor(melFilters()).reshape(BANDS, BINS);
    tables = { basis, filters, device: sound.device as string };
  }
  const frames = sound.unfold(0, FRAME, HOP).shrink([
    [0, WINDOW / HOP],
    [0, FRAME],
  ]);
  const power = frames.matmul(tables.basis).square().reshape(-1, 2, BINS).sum(1);
  const bands = tables.filters.matmul(power.transpose(0, 1));
  // decibels would be ten times as large; what is 80 of them below the loudest is as good as silence
  const logs = bands.maximum(1e-10).log().div(Math.log(10));
  const audible = logs.maximum(logs.max().sub(8));
  return audible.add(4).div(4).unsqueeze(0);
}
