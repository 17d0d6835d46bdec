// The value under the pointer, beside the title of its chart.
for (const chart of document.querySelectorAll("svg.chart")) {
  const points = JSON.parse(chart.dataset.points);
  const cursor = chart.querySelector(".cursor");
  const output = chart.closest("section").querySelector("output");
  chart.addEventListener("pointermove", (event) => {
    const box = chart.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * chart.viewBox.baseVal.width;
    let best = 0;
    for (let i = 1; i < points.x.length; i++) if (Math.abs(points.x[i] - x) < Math.abs(points.x[best] - x)) best = i;
    if (points.y[best] === null) return;
    cursor.style.visibility = "visible";
    cursor.querySelector("line").setAttribute("x1", points.x[best]);
    cursor.querySelector("line").setAttribute("x2", points.x[best]);
    cursor.querySelector("circle").setAttribute("cx", points.x[best]);
    cursor.querySelector("circle").setAttribute("cy", points.y[best]);
    output.textContent = `${points.value[best]} at ${points.label[best]}`;
  });
  chart.addEventListener("pointerleave", () => {
    cursor.style.visibility = "hidden";
    output.textContent = "";
  });
}

// The entry under the pointer, below its heat map.
for (const image of document.querySelectorAll("img[data-cells]")) {
  const cells = JSON.parse(image.dataset.cells);
  const output = image.closest("figure").querySelector("output");
  image.addEventListener("pointermove", (event) => {
    const box = image.getBoundingClientRect();
    const at = (place, size, count) => Math.min(count - 1, Math.max(0, Math.floor((place / size) * count)));
    const row = at(event.clientY - box.top, box.height, cells.shape[0]);
    const column = at(event.clientX - box.left, box.width, cells.shape[1]);
    const where = cells.names[0] ? `${cells.names[0]} ${cells.rows[row]}, ` : "";
    const value = cells.values ? cells.values[row * cells.shape[1] + column] || "not observed" : "";
    output.textContent = `${where}${cells.names[1]} ${cells.columns[column]}${value ? ": " + value : ""}`;
  });
  image.addEventListener("pointerleave", () => { output.textContent = ""; });
}
