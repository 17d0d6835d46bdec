// Colour maps that colour-blind people can read: viridis, cividis, and blue to orange through a neutral middle.
const anchors = {
  viridis: ["440154", "482878", "3e4989", "31688e", "26828e", "1f9e89", "35b779", "6ece58", "b5de2b", "fde725"],
  cividis: ["00224e", "123570", "3b496c", "575d6d", "707173", "8a8678", "a59c74", "c3b369", "e1cc55", "fee838"],
  diverging: ["0b3c74", "2a6fb0", "74a9d8", "c4dcee", "f3f3f0", "fbd9b4", "f3a95c", "d06f16", "8a3f04"],
};
export const shares = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999", "#4b3a8f"];

function table(stops) {
  const rgb = stops.map((hex) => [0, 2, 4].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  const words = new Uint32Array(256);
  for (let i = 0; i < 256; i++) {
    const place = (i / 255) * (rgb.length - 1), low = Math.min(rgb.length - 2, Math.floor(place)), part = place - low;
    const [r, g, b] = [0, 1, 2].map((c) => Math.round(rgb[low][c] * (1 - part) + rgb[low + 1][c] * part));
    words[i] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  return words;
}
export const maps = Object.fromEntries(Object.entries(anchors).map(([name, stops]) => [name, table(stops)]));

export const shown = (x) => (x === null || x === undefined || !Number.isFinite(x)) ? "–"
  : Math.abs(x) >= 1e5 || (Math.abs(x) < 1e-3 && x !== 0) ? x.toExponential(2) : String(Number(x.toPrecision(4)));
