// Curves over the slices, for the live page and for the report: lines, bands, stacked shares, round marks, the moment
// that is shown, and the numbers under the pointer.
import { shares, shown } from "/page/colors.js";

const BESIDE = 46, BELOW = 17, ABOVE = 6; // pixels for numbers and times
const FAR = 1; // times the height of the other lines, beyond which a point is far off

const css = (colour) => colour && colour.startsWith("--") ? `var(${colour})` : colour;
function round(low, high, whole) { // about four round numbers that hold everything
  const rough = Math.max((high - low) / 4, whole ? 1 : 0), power = 10 ** Math.floor(Math.log10(rough));
  let stride = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough * (1 - 1e-9));
  if (whole) stride = Math.ceil(stride);
  const found = [];
  for (let n = Math.floor(low / stride + 1e-9); ; n++) {
    found.push(n * stride);
    if (n * stride >= high - 1e-9 * (high - low)) return found;
  }
}
function powers(low, high) { // of ten
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high)), step = Math.max(1, Math.floor((last - first) / 4)), found = [];
  for (let n = first; n < last + step; n += step) found.push(10 ** n);
  return found;
}

function quantile(values, part) { // the widest parts of a band are the first slices, which would flatten all others
  const known = values.filter((v) => v !== null && Number.isFinite(v)).sort((a, b) => a - b);
  return known.length ? known[Math.round(part * (known.length - 1))] : null;
}

export class Chart {
  constructor(parent, title, pick = () => {}) {
    this.box = document.createElement("div");
    this.box.className = "curve";
    this.box.innerHTML = "<div class=head><b></b><span class=soft></span><output></output></div><div class=plot><canvas role=img></canvas><i class=pointer hidden></i></div><div class=legend></div>";
    parent.append(this.box);
    this.box.querySelector("b").textContent = title;
    this.canvas = this.box.querySelector("canvas");
    this.canvas.setAttribute("aria-label", title);
    this.note = this.box.querySelector(".soft");
    this.legend = this.box.querySelector(".legend");
    const caption = this.box.querySelector("output"), pointer = this.box.querySelector(".pointer");
    this.canvas.addEventListener("click", (event) => this.xs && pick(this.xs[this.nearest(event)]));
    this.canvas.addEventListener("pointermove", (event) => {
      if (!this.xs) return;
      const i = this.nearest(event);
      caption.textContent = this.tell(i);
      pointer.hidden = false;
      pointer.style.left = `${this.x(this.xs[i])}px`;
    });
    this.canvas.addEventListener("pointerleave", () => { caption.textContent = ""; pointer.hidden = true; });
  }
  x(n) { return BESIDE + (n - this.xs[0]) / Math.max(1, this.xs[this.xs.length - 1] - this.xs[0]) * (this.canvas.clientWidth - BESIDE - 2); }
  nearest(event) {
    const at = event.clientX - this.canvas.getBoundingClientRect().left;
    let best = 0;
    for (let i = 1; i < this.xs.length; i++) if (Math.abs(this.x(this.xs[i]) - at) < Math.abs(this.x(this.xs[best]) - at)) best = i;
    return best;
  }
  number(v) { return this.options.percent && v !== null && Number.isFinite(v) ? `${Number((100 * v).toPrecision(3))} %` : shown(v); }
  tell(i) {
    const { band, labels } = this.options, there = (v) => v !== null && v !== undefined && Number.isFinite(v);
    const values = this.lines.filter((one) => there(one.values[i])).map((one, n) => {
      const width = n === 0 && band && there(band.high[i]) ? ` ± ${this.number(band.high[i] - one.values[i])}` : "";
      return `${one.name && this.lines.length > 1 ? `${one.name.split(",")[0]} ` : ""}${this.number(one.values[i])}${width}`;
    });
    return `${values.join(", ") || "–"} at ${labels ? labels[i] : this.xs[i]}`;
  }
  // lines: [{name, values, colour, dots, far}]; what is far off the other lines is an arrow at the edge, or it would flatten
  // them. options: band {low, high}; from and to, the ends of the scale; stacked; steps;
  // percent; integers; wide, where powers of ten may be needed; at, a moment; guide, a level; labels of the slices.
  draw(xs, lines, options = {}) {
    if (!xs.length || !this.canvas.clientWidth) return;
    Object.assign(this, { xs, lines, options });
    if (options.stacked) lines.forEach((one, i) => { one.colour ||= shares[i % shares.length]; });
    const { band, from, to, stacked, steps, whole, wide, at, guide, labels } = options;
    const scale = devicePixelRatio, width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (this.canvas.width !== Math.round(width * scale) || this.canvas.height !== Math.round(height * scale)) {
      this.canvas.width = Math.round(width * scale);
      this.canvas.height = Math.round(height * scale);
    }
    const ink = this.canvas.getContext("2d"), style = getComputedStyle(this.box), probe = this.probe ||= this.box.appendChild(Object.assign(document.createElement("i"), { hidden: true }));
    const colour = (name) => { probe.style.color = css(name); return getComputedStyle(probe).color; };
    ink.setTransform(scale, 0, 0, scale, 0, 0);
    ink.clearRect(0, 0, width, height);
    // The scale.
    let low = Infinity, high = -Infinity;
    const hold = (values, least, most) => {
      for (const v of values) if (v !== null && Number.isFinite(v)) { low = Math.min(low, Math.max(v, least)); high = Math.max(high, Math.min(v, most)); }
    };
    for (const one of lines) if (!one.far) hold(one.values, -Infinity, Infinity);
    if (band) [low, high] = [Math.min(low, quantile(band.low, 0.05) ?? low), Math.max(high, quantile(band.high, 0.95) ?? high)];
    const near = high > low ? FAR * (high - low) : Infinity, [least, most] = [low - near, high + near];
    for (const one of lines) if (one.far) hold(one.values, least, most);
    if (low > high) [low, high] = [0, 1];
    const logarithmic = wide && low > 0 && high > 50 * low;
    if (!logarithmic) [low, high] = [Math.min(low, from ?? low), Math.max(high, to ?? high)];
    if (to !== undefined) [low, high] = [from ?? low, to];
    if (!(high > low)) high = low + (Math.abs(low) || 1);
    const marks = logarithmic ? powers(low, high) : round(low, high, whole), bent = logarithmic ? Math.log : (v) => v;
    [low, high] = [bent(marks[0]), bent(marks[marks.length - 1])];
    const x = (n) => this.x(n), y = (v) => height - BELOW - (bent(v) - low) / (high - low) * (height - BELOW - ABOVE);
    // Marks and times.
    ink.font = `11px ${style.fontFamily}`;
    ink.lineWidth = 1;
    for (const mark of marks) {
      ink.strokeStyle = colour("--line");
      ink.beginPath(); ink.moveTo(BESIDE, y(mark)); ink.lineTo(width, y(mark)); ink.stroke();
      ink.fillStyle = colour("--soft");
      ink.textAlign = "right";
      ink.fillText(this.number(mark), BESIDE - 5, y(mark) + 3.5);
    }
    const named = (i) => String(labels ? labels[i] : xs[i]), last = xs.length - 1;
    ink.textAlign = "left"; ink.fillText(named(0), BESIDE, height - 3);
    if (last) { ink.textAlign = "right"; ink.fillText(named(last), width - 1, height - 3); }
    if (guide !== undefined) { ink.strokeStyle = colour("--soft"); ink.setLineDash([4, 4]); ink.beginPath(); ink.moveTo(BESIDE, y(guide)); ink.lineTo(width, y(guide)); ink.stroke(); ink.setLineDash([]); }
    // What is to be shown.
    ink.save();
    ink.beginPath(); ink.rect(BESIDE - 4, 0, width - BESIDE + 4, height - BELOW + 1); ink.clip();
    const area = (top, bottom) => {
      ink.beginPath();
      top.forEach((v, i) => { if (Number.isFinite(v)) ink.lineTo(x(xs[i]), y(v)); });
      for (let i = last; i >= 0; i--) if (Number.isFinite(bottom[i])) ink.lineTo(x(xs[i]), y(bottom[i]));
      ink.fill();
    };
    if (band) { ink.fillStyle = colour("--band"); area(band.high.map((v) => v ?? NaN), band.low.map((v) => v ?? NaN)); }
    if (stacked) {
      let floor = xs.map(() => 0);
      for (const one of lines) {
        const top = floor.map((v, i) => v + (one.values[i] || 0));
        ink.fillStyle = one.colour;
        area(top, floor);
        floor = top;
      }
    } else for (const one of lines) this.line(ink, one, x, y, steps, colour(one.colour || "--accent"));
    if (at !== undefined && at >= xs[0]) { ink.strokeStyle = colour("--bad"); ink.lineWidth = 1; ink.beginPath(); ink.moveTo(x(at), 0); ink.lineTo(x(at), height - BELOW); ink.stroke(); }
    ink.restore();
    this.explain();
  }
  line(ink, one, x, y, steps, colour) {
    ink.strokeStyle = ink.fillStyle = colour;
    ink.lineWidth = 1.6;
    let before = null;
    ink.beginPath();
    one.values.forEach((v, i) => {
      if (v === null || !Number.isFinite(v)) { before = null; return; }
      const [a, b] = [x(this.xs[i]), y(v)];
      if (one.dots) {
        const top = ABOVE, bottom = this.canvas.clientHeight - BELOW, up = b < top - 1, beyond = one.far && (up || b > bottom + 1);
        if (beyond) { // an arrow that points there
          const [edge, back] = up ? [top, 6] : [bottom, -6];
          ink.moveTo(a, edge); ink.lineTo(a - 4, edge + back); ink.lineTo(a + 4, edge + back); ink.closePath();
        } else { ink.moveTo(a + one.dots, b); ink.arc(a, b, one.dots, 0, 7); }
        return;
      }
      if (before === null) ink.moveTo(a, b);
      else if (steps) ink.lineTo(a, before);
      ink.lineTo(a, b);
      before = b;
    });
    one.dots ? ink.fill() : ink.stroke();
  }
  explain() { // which line is which
    const named = this.lines.filter((one) => one.name), text = named.map((one) => one.name).join("|");
    if (this.text === text) return;
    this.text = text;
    this.legend.replaceChildren(...named.map((one) => {
      const key = document.createElement("span"), dot = document.createElement("i");
      dot.style.background = css(one.colour || "--accent");
      key.append(dot, one.name);
      return key;
    }));
  }
}
