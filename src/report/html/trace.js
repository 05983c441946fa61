// The GPU's clock and power while cells were timed, one after the other in the order of the run.

/// Cells with a trace, in the order in which they ran; data.cells is sorted by mask and length.
const tracedCells = (cells) => cells.filter((cell) => cell.trace).sort((a, b) => a.order - b.order);

/// One line through all cells, broken between them; x in seconds of timed work.
function traceLine(cells, figure, style) {
  const line = { type: "scatter", mode: "lines", x: [], y: [], text: [], hovertemplate: `%{text}<br>%{y:.0f} ${figure.unit}<extra></extra>`, ...style };
  let begin = 0;
  for (const cell of cells) {
    const times = cell.trace.t_ms;
    const throttled = cell.notes.throttled ? `<br>throttled: ${plotText(cell.notes.throttled)}` : "";
    const text = hoverText(cell) + throttled;
    times.forEach((time, i) => {
      line.x.push((begin + time) / 1e3);
      line.y.push(figure.values(cell.trace)[i]);
      line.text.push(text);
    });
    line.x.push(null);
    line.y.push(null);
    line.text.push("");
    begin += times.at(-1) ?? 0;
  }
  return line;
}

/// Shaded where a cell was throttled.
function throttledShapes(cells) {
  const shapes = [];
  let begin = 0;
  for (const cell of cells) {
    const end = begin + (cell.trace.t_ms.at(-1) ?? 0);
    if (cell.notes.throttled) shapes.push({ type: "rect", xref: "x", yref: "paper", x0: begin / 1e3, x1: end / 1e3, y0: 0, y1: 1, fillcolor: colorOf("--warn"), opacity: 0.18, line: { width: 0 } });
    begin = end;
  }
  return shapes;
}

function drawTrace() {
  const section = document.getElementById("trace-section");
  const cells = tracedCells(shownCells());
  section.hidden = cells.length === 0 || typeof Plotly === "undefined";
  if (section.hidden) return;
  const place = document.getElementById("plot-trace");
  const clock = { unit: "MHz", values: (trace) => trace.sm_clock_mhz };
  const power = { unit: "W", values: (trace) => trace.power_w };
  const title = (text) => ({ title: { text, standoff: 6, font: { size: 11 } } });
  Plotly.react(place, [
    traceLine(cells, clock, { name: "SM clock", line: { color: PALETTE[0], width: 1.5 }, yaxis: "y" }),
    traceLine(cells, power, { name: "power", line: { color: PALETTE[1], width: 1.5 }, yaxis: "y2" }),
  ], {
    width: place.clientWidth, height: 360, margin: { l: 62, r: 8, t: 34, b: 44 },
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: FONT, size: 12, color: colorOf("--ink") },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" }, shapes: throttledShapes(cells),
    xaxis: axisStyle({ ...title("seconds of timed work"), anchor: "y2" }),
    yaxis: axisStyle({ ...title("MHz"), domain: [0.54, 1], rangemode: "tozero" }),
    yaxis2: axisStyle({ ...title("W"), domain: [0, 0.46], rangemode: "tozero" }),
    hoverlabel: { align: "left", bgcolor: colorOf("--card"), bordercolor: colorOf("--line"), font: { family: FONT, size: 12, color: colorOf("--ink") } },
  }, { displaylogo: false, displayModeBar: false });
}
