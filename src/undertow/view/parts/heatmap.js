// One map, for the live page and for the report: cells in colours, missing ones hatched, some marked, labels beside it.
import { maps, shown } from "/page/colors.js";

function hatch(dark) {
  const tile = new OffscreenCanvas(8, 8), ink = tile.getContext("2d");
  ink.strokeStyle = dark ? "#667080" : "#9aa5b4";
  ink.lineWidth = 1.5;
  for (const at of [-8, 0, 8]) { ink.beginPath(); ink.moveTo(at, 8); ink.lineTo(at + 8, 0); ink.stroke(); }
  return tile;
}

const MOST_LABELS = 16; // beside a map
const few = (labels) => {
  const every = Math.ceil(labels.length / MOST_LABELS);
  return labels.filter((_, i) => i % every === 0).map((label) => Object.assign(document.createElement("i"), { textContent: label }));
};

export class HeatMap {
  constructor(parent, title, colours, events) {
    this.figure = document.createElement("figure");
    this.figure.innerHTML = "<figcaption><b></b><span class=key><span></span><canvas class=scale width=256 height=1></canvas><span></span></span></figcaption>"
      + "<div class=labelled><div class=rows></div><canvas class=map tabindex=0 role=img></canvas><div></div><div class=columns></div></div>";
    parent.append(this.figure);
    const find = (name) => this.figure.querySelector(name);
    this.canvas = find("canvas.map");
    this.canvas.setAttribute("aria-label", title);
    find("b").textContent = title;
    [this.low, this.high] = this.figure.querySelectorAll(".key span");
    this.colours = maps[colours];
    const scale = find("canvas.scale").getContext("2d"), strip = scale.createImageData(256, 1);
    new Uint32Array(strip.data.buffer).set(this.colours);
    scale.putImageData(strip, 0, 0);
    const cell = (event) => {
      const box = this.canvas.getBoundingClientRect(), at = (part, count) => Math.max(0, Math.min(count - 1, Math.floor(part * count)));
      return [at((event.clientY - box.top) / box.height, this.rows), at((event.clientX - box.left) / box.width, this.columns)];
    };
    this.canvas.addEventListener("pointermove", (event) => this.rows && events.hover(...cell(event)));
    this.canvas.addEventListener("click", (event) => this.rows && events.pick?.(...cell(event)));
    this.canvas.addEventListener("keydown", (event) => events.key?.(event));
    this.canvas.addEventListener("pointerleave", () => events.leave?.());
  }
  name(rows, columns) { // labels of the rows and columns, as many as can be read; none where there are none
    this.figure.querySelector(".rows").replaceChildren(...few(rows || []));
    this.figure.querySelector(".columns").replaceChildren(...few(columns || []));
  }
  draw(values, missing, rows, columns, low, high, marks, dark) {
    [this.rows, this.columns] = [rows, columns];
    if (!this.image || this.image.width !== columns || this.image.height !== rows) {
      this.cells = new OffscreenCanvas(columns, rows);
      this.image = this.cells.getContext("2d").createImageData(columns, rows);
      this.mask = new OffscreenCanvas(columns, rows);
      this.holes = this.mask.getContext("2d").createImageData(columns, rows);
    }
    const words = new Uint32Array(this.image.data.buffer), holes = new Uint32Array(this.holes.data.buffer);
    const factor = high > low ? 255 / (high - low) : 0;
    let anyMissing = false;
    for (let i = 0; i < words.length; i++) {
      const hole = Number.isNaN(values[i]) || (missing && Number.isNaN(missing[i]));
      anyMissing ||= hole;
      holes[i] = hole ? 0xff000000 : 0;
      words[i] = hole ? 0 : this.colours[Math.max(0, Math.min(255, (values[i] - low) * factor)) | 0];
    }
    const wide = Math.max(1, Math.round(this.canvas.clientWidth * devicePixelRatio));
    const tall = Math.max(24, Math.min(wide, Math.round(wide * Math.max(rows / columns, 0.15))));
    if (this.canvas.width !== wide || this.canvas.height !== tall) { this.canvas.width = wide; this.canvas.height = tall; }
    const ink = this.canvas.getContext("2d");
    ink.clearRect(0, 0, wide, tall);
    ink.imageSmoothingEnabled = false;
    this.cells.getContext("2d").putImageData(this.image, 0, 0);
    ink.drawImage(this.cells, 0, 0, wide, tall);
    if (anyMissing) {
      if (!this.cover || this.cover.width !== wide || this.cover.height !== tall) this.cover = new OffscreenCanvas(wide, tall);
      const over = this.cover.getContext("2d");
      this.mask.getContext("2d").putImageData(this.holes, 0, 0);
      over.globalCompositeOperation = "copy";
      over.imageSmoothingEnabled = false;
      over.drawImage(this.mask, 0, 0, wide, tall);
      over.globalCompositeOperation = "source-in";
      over.fillStyle = over.createPattern(hatch(dark), "repeat");
      over.fillRect(0, 0, wide, tall);
      ink.drawImage(this.cover, 0, 0);
    }
    for (const [row, column, colour] of marks) {
      const box = [column * wide / columns, row * tall / rows, Math.max(3, wide / columns), Math.max(3, tall / rows)];
      for (const [style, width] of [[dark ? "#000000" : "#ffffff", 4], [colour, 2]]) { // seen on every colour of the map
        ink.strokeStyle = style;
        ink.lineWidth = width * devicePixelRatio;
        ink.strokeRect(...box);
      }
    }
    this.low.textContent = shown(low);
    this.high.textContent = shown(high);
  }
}
