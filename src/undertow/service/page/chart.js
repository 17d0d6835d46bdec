// Curves over the slices: lines, bands, stacked shares, and a mark for the moment that is shown.
import { shown } from "/page/colors.js";

export class Chart {
  constructor(parent, title, pick) {
    this.box = document.createElement("div");
    this.box.className = "curve";
    this.box.innerHTML = "<div class=head><b></b><span class=soft></span></div><canvas role=img></canvas><div class=legend></div>";
    parent.append(this.box);
    this.box.querySelector("b").textContent = title;
    this.canvas = this.box.querySelector("canvas");
    this.canvas.setAttribute("aria-label", title);
    this.note = this.box.querySelector(".soft");
    this.legend = this.box.querySelector(".legend");
    this.canvas.addEventListener("click", (event) => {
      if (!this.xs || !this.xs.length) return;
      const area = this.canvas.getBoundingClientRect(), part = (event.clientX - area.left) / area.width;
      pick(Math.round(this.xs[0] + part * (this.xs[this.xs.length - 1] - this.xs[0])));
    });
  }
  // lines: [{name, values, colour, dots}], band: {low, high}, options: {from, to, stacked, at, guide}
  draw(xs, lines, { band, from, to, stacked, at, guide } = {}) {
    this.xs = xs;
    const scale = devicePixelRatio, wide = Math.round(this.canvas.clientWidth * scale), tall = Math.round(this.canvas.clientHeight * scale);
    if (!wide || !xs.length) return;
    if (this.canvas.width !== wide || this.canvas.height !== tall) { this.canvas.width = wide; this.canvas.height = tall; }
    const ink = this.canvas.getContext("2d"), style = getComputedStyle(document.documentElement);
    const colour = (name) => { ink.fillStyle = "#000"; const probe = this.probe ||= document.body.appendChild(Object.assign(document.createElement("i"), { hidden: true })); probe.style.color = `var(${name})`; return getComputedStyle(probe).color; };
    ink.clearRect(0, 0, wide, tall);
    let low = from ?? Infinity, high = to ?? -Infinity;
    if (from === undefined || to === undefined) {
      const all = [...lines.map((one) => one.values), ...(band ? [band.low, band.high] : [])];
      for (const values of all) for (const v of values) if (v !== null && Number.isFinite(v)) { if (from === undefined && v < low) low = v; if (to === undefined && v > high) high = v; }
    }
    if (!(high > low)) { high = (Number.isFinite(low) ? low : 0) + 1; low = Number.isFinite(low) ? low - (from === undefined ? 1 : 0) : 0; }
    const first = xs[0], span = Math.max(1, xs[xs.length - 1] - first);
    const x = (n) => (n - first) / span * (wide - 2 * scale) + scale, y = (v) => tall - 3 * scale - (v - low) / (high - low) * (tall - 18 * scale);
    ink.font = `${11 * scale}px system-ui`;
    ink.fillStyle = colour("--soft");
    ink.fillText(shown(high), 2 * scale, 11 * scale);
    ink.fillText(shown(low), 2 * scale, tall - 4 * scale);
    if (guide !== undefined) { ink.strokeStyle = colour("--line"); ink.setLineDash([4, 4]); ink.beginPath(); ink.moveTo(0, y(guide)); ink.lineTo(wide, y(guide)); ink.stroke(); ink.setLineDash([]); }
    if (band) {
      ink.fillStyle = colour("--band");
      ink.beginPath();
      xs.forEach((n, i) => ink[i ? "lineTo" : "moveTo"](x(n), y(band.high[i])));
      for (let i = xs.length - 1; i >= 0; i--) ink.lineTo(x(xs[i]), y(band.low[i]));
      ink.fill();
    }
    if (stacked) {
      const floor = xs.map(() => 0);
      for (const one of lines) {
        ink.fillStyle = one.colour;
        ink.beginPath();
        xs.forEach((n, i) => ink[i ? "lineTo" : "moveTo"](x(n), y(floor[i] + (one.values[i] || 0))));
        for (let i = xs.length - 1; i >= 0; i--) ink.lineTo(x(xs[i]), y(floor[i]));
        ink.fill();
        one.values.forEach((v, i) => { floor[i] += v || 0; });
      }
    } else for (const one of lines) {
      ink.strokeStyle = ink.fillStyle = one.colour || colour("--accent");
      ink.lineWidth = 1.6 * scale;
      let pen = false;
      ink.beginPath();
      one.values.forEach((v, i) => {
        if (v === null || !Number.isFinite(v)) { pen = false; return; }
        if (one.dots) { ink.moveTo(x(xs[i]) + 2.2 * scale, y(v)); ink.arc(x(xs[i]), y(v), 2.2 * scale, 0, 7); return; }
        ink[pen ? "lineTo" : "moveTo"](x(xs[i]), y(v));
        pen = true;
      });
      one.dots ? ink.fill() : ink.stroke();
    }
    if (at !== undefined && at >= first) { ink.strokeStyle = colour("--bad"); ink.lineWidth = scale; ink.beginPath(); ink.moveTo(x(at), 0); ink.lineTo(x(at), tall); ink.stroke(); }
    const text = lines.filter((one) => one.name).map((one) => `${one.name}`).join("|");
    if (this.text !== text) {
      this.text = text;
      this.legend.replaceChildren(...lines.filter((one) => one.name).map((one) => {
        const key = document.createElement("span"), dot = document.createElement("i");
        dot.style.background = one.colour || "var(--accent)";
        key.append(dot, one.name);
        return key;
      }));
    }
  }
}
