// The page: which stream, which moment, which plane; everything is drawn anew when one of them changes.
import { Live, getFrame, getJson, postJson } from "/page/api.js";
import { Chart } from "/page/chart.js";
import { shown } from "/page/colors.js";
import { HeatMap } from "/page/heatmap.js";
import { showIncidents } from "/page/incidents.js";
import { Overview } from "/page/overview.js";

const at = (id) => document.getElementById(id);
const state = { stream: null, frame: null, live: true, plane: null, cell: null, marks: [], series: null, redraws: 0, cellAt: 0 };
window.undertow = state; // for people who look into the page, and for its tests
const KEPT = 10000; // slices; the service keeps 2000 of a stream, a finished run is shown whole up to here

// ---- theme
const themes = ["", "light", "dark"];
function setTheme(name) {
  if (name) document.documentElement.dataset.theme = name; else delete document.documentElement.dataset.theme;
  at("theme").textContent = { "": "Theme: system", light: "Theme: light", dark: "Theme: dark" }[name];
  localStorage.setItem("undertow-theme", name);
  drawAll();
}
const dark = () => getComputedStyle(document.documentElement).colorScheme === "dark"
  || (!document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);

// ---- maps
const events = {
  hover: (row, column) => { if (state.frame) at("hover").textContent = describe(position(row, column)); },
  pick: (row, column) => pickCell(position(row, column)),
  key: (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!step && event.key !== "Enter") return;
    event.preventDefault();
    event.stopPropagation();
    if (event.key === "Enter") { if (state.cursor) pickCell(state.cursor); return; }
    const { rows, columns } = sizes(), [r, c] = state.cursor ? planeOf(state.cursor) : [0, 0];
    state.cursor = position(Math.max(0, Math.min(rows - 1, r + step[0])), Math.max(0, Math.min(columns - 1, c + step[1])));
    at("hover").textContent = describe(state.cursor);
    draw();
  },
};
const panels = [["data", "viridis"], ["mean", "viridis"], ["outlier probability", "cividis"], ["residual / std", "diverging"]]
  .map(([title, colours]) => new HeatMap(at("maps"), title, colours, events));

function sizes() {
  const { shape } = state.stream, { rows, columns } = state.plane;
  return { rows: rows === null ? 1 : shape[rows], columns: shape[columns] };
}
function position(row, column) {
  const place = [...state.plane.fixed];
  if (state.plane.rows !== null) place[state.plane.rows] = row;
  place[state.plane.columns] = column;
  return place;
}
const planeOf = (place) => [state.plane.rows === null ? 0 : place[state.plane.rows], place[state.plane.columns]];
const inPlane = (place) => place.every((n, mode) => mode === state.plane.rows || mode === state.plane.columns || n === state.plane.fixed[mode]);
const flat = (place) => place.reduce((sum, n, mode) => sum * state.stream.shape[mode] + n, 0);
const label = (mode, n) => state.stream.labels[mode] ? state.stream.labels[mode][n] ?? "(free)" : String(n);

function plane(values) {
  const { shape: { length } } = state.stream;
  if (length === 1 || (length === 2 && state.plane.rows === 0)) return values; // as it came
  const { rows, columns } = sizes(), found = new Float32Array(rows * columns), { shape } = state.stream;
  const stride = shape.map((_, mode) => shape.slice(mode + 1).reduce((a, b) => a * b, 1));
  const base = state.plane.fixed.reduce((sum, n, mode) => sum + (mode === state.plane.rows || mode === state.plane.columns ? 0 : n * stride[mode]), 0);
  const down = state.plane.rows === null ? 0 : stride[state.plane.rows], right = stride[state.plane.columns];
  for (let r = 0, i = 0; r < rows; r++) for (let c = 0; c < columns; c++, i++) found[i] = values[base + r * down + c * right];
  return found;
}
function range(mean, data, probability) { // of what is expected, and of what was observed but for outliers
  const step = Math.max(1, Math.floor(mean.length / 4096)), every = new Float32Array(2 * Math.ceil(mean.length / step));
  let count = 0;
  for (let i = 0; i < mean.length; i += step) {
    if (Number.isFinite(mean[i])) every[count++] = mean[i];
    if (Number.isFinite(data[i]) && probability[i] < 0.5) every[count++] = data[i];
  }
  const some = every.subarray(0, count).sort();
  return count ? [some[Math.floor(count * 0.01)], some[Math.floor((count - 1) * 0.99)]] : [0, 1];
}
function draw() {
  const { frame } = state;
  if (!frame || !state.stream) return;
  const { rows, columns } = sizes(), night = dark(), began = performance.now();
  const [data, mean, std, probability] = [frame.data, frame.mean, frame.std, frame.probability].map(plane);
  const residual = new Float32Array(data.length);
  for (let i = 0; i < residual.length; i++) residual[i] = (data[i] - mean[i]) / std[i];
  const [low, high] = range(mean, data, probability);
  const bad = night ? "#ff9d4d" : "#d1495b";
  const marks = state.marks.filter(inPlane).map((place) => [...planeOf(place), bad]);
  for (const place of [state.cell, state.cursor]) if (place && inPlane(place)) marks.push([...planeOf(place), night ? "#ffffff" : "#000000"]);
  panels[0].draw(data, null, rows, columns, low, high, marks, night);
  panels[1].draw(mean, null, rows, columns, low, high, marks, night);
  panels[2].draw(probability, data, rows, columns, 0, 1, marks, night);
  panels[3].draw(residual, null, rows, columns, -5, 5, marks, night);
  at("moment").textContent = frame.time ? `slice ${frame.sequence}, ${moment(frame.time)}` : `slice ${frame.sequence}`;
  const n = frame.numbers;
  at("facts").textContent = `${state.stream.shape.join("×")} · rank ${n.rank} · noise ${shown(n.noise_std)} · observed ${(100 * n.observed).toFixed(0)} % · outliers ${(100 * n.outlier_rate).toFixed(1)} %${n.status.length ? " · " + n.status.join(" ").toLowerCase().replace(/_/g, " ") : ""}`;
  state.redraws++;
  state.drawMs = performance.now() - began;
}
let due = false;
function drawSoon() { if (!due) { due = true; requestAnimationFrame(() => { due = false; draw(); }); } }
function describe(place) {
  const i = flat(place), { data, mean, std, probability } = state.frame;
  const where = place.map((n, mode) => `${state.stream.dims[mode]} ${label(mode, n)}`).join(", ");
  return `${where}: ${Number.isNaN(data[i]) ? "missing" : "value " + shown(data[i])}, expected ${shown(mean[i])} ± ${shown(1.96 * std[i])}`
    + (Number.isNaN(data[i]) ? "" : `, outlier probability ${shown(probability[i])}`);
}

function nameSides() {
  const { rows, columns } = state.plane, { labels } = state.stream;
  const named = (mode) => mode === null || !labels[mode] ? null : labels[mode].map((_, n) => label(mode, n));
  for (const panel of panels) panel.name(named(rows), named(columns));
}

// ---- which plane of a slice with more than two modes
function showModes() {
  const { shape, dims } = state.stream, box = at("modes"), many = shape.length;
  state.plane = { rows: many > 1 ? 0 : null, columns: many > 1 ? 1 : 0, fixed: shape.map(() => 0) };
  box.replaceChildren();
  nameSides();
  if (many < 3) return;
  const choice = (what, key) => {
    const select = document.createElement("select");
    dims.forEach((name, mode) => select.add(new Option(name, mode, false, mode === state.plane[key])));
    select.onchange = () => {
      const other = key === "rows" ? "columns" : "rows", wanted = Number(select.value);
      if (state.plane[other] === wanted) state.plane[other] = state.plane[key];
      state.plane[key] = wanted;
      fill();
      nameSides();
      draw();
    };
    const named = document.createElement("label");
    named.append(what, select);
    return named;
  };
  const fill = () => {
    box.replaceChildren(choice("rows", "rows"), choice("columns", "columns"));
    dims.forEach((name, mode) => {
      if (mode === state.plane.rows || mode === state.plane.columns) return;
      const named = document.createElement("label"), slider = document.createElement("input"), value = document.createElement("output");
      Object.assign(slider, { type: "range", min: 0, max: shape[mode] - 1, value: state.plane.fixed[mode] });
      value.textContent = label(mode, state.plane.fixed[mode]);
      slider.oninput = () => { state.plane.fixed[mode] = Number(slider.value); value.textContent = label(mode, Number(slider.value)); draw(); };
      named.append(name, slider, value);
      box.append(named);
    });
  };
  state.fillModes = fill;
  fill();
}

// ---- time
async function goTo(sequence) {
  const name = state.stream.name;
  setLive(false);
  at("time").value = sequence;
  try {
    const frame = await getFrame(`/api/streams/${name}/frames/${sequence}`);
    if (state.stream.name === name && !state.live) { state.frame = frame; draw(); drawCurves(); }
  } catch (error) { at("hover").textContent = error.message; }
}
function setLive(on) {
  state.live = on;
  at("live").setAttribute("aria-pressed", on);
  if (on) { state.marks = []; newest(); }
}
async function newest() {
  if (!state.stream || !(state.stream.newest || (state.series && state.series.sequence.length))) return; // nothing is kept yet
  const frame = await getFrame(`/api/streams/${state.stream.name}/frames/newest`).catch(() => null);
  if (frame && state.live && frame.stream === state.stream.name) { state.frame = frame; draw(); }
}
function moved() {
  const xs = state.series ? state.series.sequence : [];
  if (!xs.length) return;
  Object.assign(at("time"), { min: xs[0], max: xs[xs.length - 1] });
  if (state.live) at("time").value = xs[xs.length - 1];
}
at("time").oninput = () => goTo(Number(at("time").value));
const by = (step) => state.frame && goTo(Math.max(Number(at("time").min), Math.min(Number(at("time").max), state.frame.sequence + step)));
at("back").onclick = () => by(-1);
at("forth").onclick = () => by(1);
at("live").onclick = () => setLive(!state.live);
addEventListener("keydown", (event) => {
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey || !state.stream) return;
  if (event.key === "ArrowLeft") by(-1);
  if (event.key === "ArrowRight") by(1);
  if (event.key.toLowerCase() === "l") setLive(!state.live);
});

// ---- curves
const charts = Object.fromEntries(["rank", "noise", "outlier rate", "calibration", "weights of the predictors"].map((name) => [name, new Chart(at("curves"), name, goTo)]));
const moment = (time) => time.replace("T", " ").replace(/(\.\d+)?(Z|\+00:00)?$/, "");
const moments = ({ time, sequence }) => time.map((one, i) => one ? moment(one) : `slice ${sequence[i]}`); // a run may have no dates
function drawCurves() {
  const s = state.series;
  if (!s || !s.sequence.length) return;
  const n = s.numbers, kept = (values) => values.some((v) => v !== null);
  charts.calibration.box.hidden = !kept(n.calibration); // a finished run has none
  const line = (values) => [{ values }], common = { labels: moments(s), ...(state.frame ? { at: state.frame.sequence } : {}) };
  charts.rank.draw(s.sequence, line(n.rank), { from: 0, whole: true, steps: true, ...common });
  charts.noise.draw(s.sequence, line(n.noise_std), { from: 0, wide: true, ...common });
  charts["outlier rate"].draw(s.sequence, line(n.outlier_rate), { from: 0, percent: true, ...common });
  charts.calibration.draw(s.sequence, line(n.calibration), { from: 0, to: 1, guide: 0.95, percent: true, ...common });
  charts.calibration.note.textContent = "should be 95 %";
  const names = Object.keys(s.weights);
  charts["weights of the predictors"].draw(s.sequence, names.map((name) => ({ name: name.replace(/_/g, " "), values: s.weights[name] })), { from: 0, to: 1, stacked: true, percent: true, ...common });
}
const seriesEnd = () => state.series && state.series.sequence.length ? state.series.sequence.at(-1) + 1 : 0;
let dueSeries = 0, extended = 0;
function extendSeries() { // twice a second at most, and once more at the end
  dueSeries ||= setTimeout(async () => {
    dueSeries = 0;
    extended = performance.now();
    if (!state.stream) return;
    if (state.fetching) extendSeries(); else await fetchSeries().catch(() => {});
  }, Math.max(0, 500 - (performance.now() - extended)));
}
async function fetchSeries() {
  const name = state.stream.name, old = state.series, from = seriesEnd();
  if (state.fetching) return;
  state.fetching = true;
  try {
    const more = await getJson(`/api/streams/${name}/series?first=${from}&most=${KEPT}`);
    if (!state.stream || state.stream.name !== name) return;
    if (!old || !old.sequence.length) state.series = more;
    else {
      const join = (a = [], b = []) => a.concat(b).slice(-KEPT), count = old.sequence.length;
      for (const key of Object.keys(more.weights)) old.weights[key] ||= Array(count).fill(null);
      for (const key of Object.keys(old.weights)) old.weights[key] = join(old.weights[key], more.weights[key] || more.sequence.map(() => null));
      for (const key of Object.keys(old.numbers)) old.numbers[key] = join(old.numbers[key], more.numbers[key]);
      old.time = join(old.time, more.time);
      old.sequence = join(old.sequence, more.sequence);
    }
    moved();
    drawCurves();
  } finally { state.fetching = false; }
}

// ---- one cell
let cellChart = null;
async function pickCell(place) {
  state.cell = place;
  const box = at("cell");
  box.hidden = false;
  if (!cellChart) {
    cellChart = new Chart(box, "", goTo);
    const close = document.createElement("button");
    close.textContent = "Close";
    close.onclick = () => { state.cell = null; box.hidden = true; draw(); };
    box.querySelector(".head").append(close);
  }
  await drawCell();
  draw();
}
async function drawCell() {
  if (!state.cell || !state.stream) return;
  const place = state.cell.join(","), past = await getJson(`/api/streams/${state.stream.name}/cell?position=${place}`);
  if (!state.cell || state.cell.join(",") !== place || past.stream !== state.stream.name) return;
  cellChart.box.querySelector("b").textContent = state.cell.map((n, mode) => `${state.stream.dims[mode]} ${label(mode, n)}`).join(", ");
  const edge = (side) => past.mean.map((m, i) => m + side * 1.96 * past.std[i]);
  const flagged = past.data.map((x, i) => past.outlier_probability[i] >= 0.5 ? x : null), fine = past.data.map((x, i) => past.outlier_probability[i] >= 0.5 ? null : x);
  cellChart.draw(past.sequence, [{ name: "expected, with 95 % band", values: past.mean }, { name: "observed", values: fine, dots: 1.8, colour: "--soft" }, { name: "outlier", values: flagged, dots: 3.2, colour: "--bad", far: true }],
    { band: { low: edge(-1), high: edge(1) }, at: state.frame ? state.frame.sequence : undefined, labels: moments(past) });
}

// ---- incidents
async function fetchIncidents() {
  const name = state.stream.name, { incidents } = await getJson(`/api/streams/${name}/incidents?most=100`);
  if (state.stream.name !== name) return;
  showIncidents(at("incidents"), incidents, {
    jump: async (one) => {
      state.marks = one.entries;
      if (one.entries.length) {
        const place = one.entries[0];
        state.plane.fixed = [...place];
        if (state.stream.shape.length > 2) state.fillModes();
        state.cell = place;
      }
      await goTo(Math.min(one.last, Math.max(one.since, Number(at("time").min))));
      if (one.entries.length) await pickCell(one.entries[0]);
    },
    said: state.readOnly ? null : async (one, wrong) => { await postJson(`/api/streams/${name}/incidents/${one.id}/feedback`, { false_alarm: wrong }); await fetchIncidents(); },
  });
}

// ---- streams
const overview = new Overview(at("streams"), at("find"), choose);
async function choose(name) {
  const found = await getJson(`/api/streams/${name}`);
  Object.assign(state, { stream: found, frame: null, series: null, cell: null, cursor: null, marks: [], live: true, version: null });
  history.replaceState(null, "", `#${encodeURIComponent(name)}`);
  at("main").hidden = false;
  at("cell").hidden = true;
  at("title").textContent = name;
  at("live").setAttribute("aria-pressed", true);
  showModes();
  overview.current(name);
  live.watch(name);
  await Promise.all([newest(), fetchSeries(), fetchIncidents()]);
}
async function fetchStreams() {
  const { streams, read_only } = await getJson("/api/streams");
  state.readOnly = read_only;
  overview.set(streams);
  at("no-streams").hidden = streams.length > 0;
  const wanted = decodeURIComponent(location.hash.slice(1));
  if (state.stream && !streams.some((one) => one.name === state.stream.name)) { state.stream = null; at("main").hidden = true; }
  if (!state.stream && streams.length) await choose(streams.some((one) => one.name === wanted) ? wanted : streams[0].name);
}
async function grew() {
  if (state.growing) return;
  state.growing = true;
  try { await choose(state.stream.name); } catch { /* the next frame tries again */ } finally { state.growing = false; }
}
function onFrame(frame) {
  if (!state.stream || frame.stream !== state.stream.name) return;
  if (frame.data.length !== state.stream.shape.reduce((a, b) => a * b, 1)) return grew(); // labels have come
  state.stream.next = frame.sequence + 1;
  if (state.live) { state.frame = frame; drawSoon(); }
  const now = performance.now();
  extendSeries();
  if (state.cell && now - state.cellAt > 1000) { state.cellAt = now; drawCell().catch(() => {}); }
}
function onOverview(streams) {
  if (overview.update(streams)) fetchStreams().catch(() => {});
  const mine = state.stream && streams.find((one) => one.stream === state.stream.name);
  if (mine && mine.incidents_version !== state.version) { state.version = mine.incidents_version; setTimeout(() => fetchIncidents().catch(() => {}), 150); }
  if (mine && mine.sequence >= seriesEnd()) extendSeries();
}
function onState(on) {
  at("connection").dataset.state = on ? "on" : "off";
  at("connection").textContent = on ? "connected" : "not connected, trying again …";
  if (on) fetchStreams().then(() => state.stream && Promise.all([newest(), fetchSeries(), fetchIncidents()])).catch(() => {});
}
const live = new Live(onFrame, onOverview, onState);
function drawAll() { draw(); drawCurves(); drawCell().catch(() => {}); }
at("theme").onclick = () => setTheme(themes[(themes.indexOf(localStorage.getItem("undertow-theme") || "") + 1) % 3]);
setTheme(localStorage.getItem("undertow-theme") || "");
addEventListener("resize", drawAll);
let before = 0;
setInterval(() => { at("rate").textContent = state.live ? `${state.redraws - before} redraws/s` : ""; before = state.redraws; }, 1000);
