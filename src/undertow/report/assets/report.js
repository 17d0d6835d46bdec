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
