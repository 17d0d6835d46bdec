// Charts and maps where the page has places for them: the parts of the live page, filled from the page itself.
const drawings = [], night = matchMedia("(prefers-color-scheme: dark)");

for (const host of document.querySelectorAll("[data-chart]")) {
  const { title, slices, lines, how } = JSON.parse(host.dataset.chart), chart = new Chart(host, "");
  chart.canvas.setAttribute("aria-label", title);
  drawings.push(() => chart.draw(slices, lines, how));
}

async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
for (const host of document.querySelectorAll("[data-map]")) {
  const { title, colours, ends: [low, high], shape, levels, names, labelled, rows, columns, values } = JSON.parse(host.dataset.map);
  const shownEntry = document.createElement("output");
  const hover = (row, column) => {
    const value = values ? values[row * shape[1] + column] || "not observed" : "";
    shownEntry.textContent = names ? `${names[0] ? `${names[0]} ${rows[row]}, ` : ""}${names[1]} ${columns[column]}${value ? `: ${value}` : ""}` : "";
  };
  const map = new HeatMap(host, title, colours, { hover, leave: () => { shownEntry.textContent = ""; } });
  map.figure.append(shownEntry);
  if (names) {
    map.name(labelled[0] && rows, labelled[1] && columns);
    map.canvas.title = names[0] ? `${names[0]} ↓ ${names[1]} →` : `${names[1]} →`;
  }
  unpacked(levels).then((found) => { // 0 to 254 from one end to the other, 255 where there is nothing
    const numbers = Float32Array.from(found, (level) => level === 255 ? NaN : low + level / 254 * (high - low));
    const draw = () => map.draw(numbers, null, ...shape, low, high, [], night.matches);
    drawings.push(draw);
    draw();
  });
}

const drawAll = () => drawings.forEach((draw) => draw());
night.addEventListener("change", drawAll);
addEventListener("resize", drawAll);
drawAll();
