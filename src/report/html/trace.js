// The GPU's clock and power while the cells shown were timed, in the order of the run.

const CLOCK_COLOR = "#2f6fbb";
const POWER_COLOR = "#e08a3c";
const TRACE_HEIGHT = 360;

/// One line through all cells, interrupted between them; x in seconds of timed work.
function traceLine(traced, figure, style) {
  const line = { type: "scatter", mode: "lines", x: [], y: [], text: [], hovertemplate: `%{text}<br>%{y:.0f} ${figure.unit}<extra></extra>`, ...style };
  let begin = 0;
  for (const cell of traced) {
    const times = cell.trace.t_ms;
    const text = hoverText(cell) + (cell.throttled ? `<br>throttled: ${plotText(cell.throttled)}` : "");
    times.forEach((time, i) => {
      line.x.push((begin + time) / 1e3);
      line.y.push(figure.values(cell.trace)[i]);
      line.text.push(text);
    });
    for (const list of [line.x, line.y]) list.push(null);
    line.text.push("");
    begin += times.at(-1) ?? 0;
  }
  return line;
}

/// Shades the cells that were throttled.
function throttledShapes(traced) {
  const shapes = [];
  let begin = 0;
  for (const cell of traced) {
    const end = begin + (cell.trace.t_ms.at(-1) ?? 0);
    if (cell.throttled) shapes.push({ type: "rect", xref: "x", yref: "paper", x0: begin / 1e3, x1: end / 1e3, y0: 0, y1: 1, fillcolor: colorOf("--warn"), opacity: 0.18, line: { width: 0 } });
    begin = end;
  }
  return shapes;
}

function drawTraces(traced) {
  const place = document.getElementById("plot-trace");
  const clock = { unit: "MHz", values: (trace) => trace.sm_clock_mhz };
  const power = { unit: "W", values: (trace) => trace.power_w };
  Plotly.react(place, [
    traceLine(traced, clock, { name: "SM clock", line: { color: CLOCK_COLOR, width: 1.5 }, yaxis: "y" }),
    traceLine(traced, power, { name: "power", line: { color: POWER_COLOR, width: 1.5 }, yaxis: "y2" }),
  ], {
    width: place.clientWidth, height: TRACE_HEIGHT, margin: { l: 62, r: 8, t: 34, b: 44 }, shapes: throttledShapes(traced),
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: FONT, size: 12, color: colorOf("--ink") },
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
    xaxis: axisStyle({ ...axisTitle("seconds of timed work"), anchor: "y2" }),
    yaxis: axisStyle({ ...axisTitle("MHz"), domain: [0.54, 1], rangemode: "tozero" }),
    yaxis2: axisStyle({ ...axisTitle("W"), domain: [0, 0.46], rangemode: "tozero" }),
  }, { displaylogo: false, displayModeBar: false });
}

function drawTraceSection() {
  const section = document.getElementById("trace-section");
  const traced = cells.filter((cell) => cell.trace && passesFilters(cell) && isChosen(cell)).sort((a, b) => a.order - b.order);
  section.hidden = traced.length === 0 || !hasPlots;
  observer.unobserve(section);
  pending.delete(section);
  if (section.hidden) return;
  document.getElementById("plot-trace").style.minHeight = `${TRACE_HEIGHT}px`;
  pending.set(section, () => drawTraces(traced));
  observer.observe(section);
}
