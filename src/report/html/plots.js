// What all figures share, and the figures of cells on one device: grouped bars, a series per kernel
// (and setting), a panel per length or per mask; the GPU's clock and power.

const FONT = getComputedStyle(document.body).fontFamily;
const colorOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Plotly interprets some HTML in its texts.
const plotText = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

/// Breaks "sliding_window_causal" into two or three lines.
function wrapName(name) {
  const lines = [""];
  for (const word of String(name).split(/(?<=_)/)) {
    if (lines.at(-1) && (lines.at(-1) + word).length > 10) lines.push("");
    lines[lines.length - 1] += word;
  }
  return lines.map(plotText).join("<br>");
}

/// The rectangles of panels in rows of `columns` from the top, in shares of a plot of this width and
/// height.
function panelGrid(count, columns, width, height, gap) {
  const rows = Math.ceil(count / columns);
  const [gx, gy] = [gap.x / width, gap.y / height];
  const [w, h] = [(1 - gx * (columns - 1)) / columns, (1 - gy * (rows - 1)) / rows];
  return Array.from({ length: count }, (_, i) => {
    const [x, y] = [(i % columns) * (w + gx), 1 - Math.floor(i / columns) * (h + gy)];
    return { x: [x, Math.min(1, x + w)], y: [Math.max(0, y - h), y] };
  });
}

/// Arranges panels in rows: the height of all in pixels, and the rectangle of each (grid).
function arrangePanels(place, margin, count, columns, panelHeight, gap) {
  const width = place.clientWidth - margin.l - margin.r;
  const rows = Math.ceil(count / columns);
  const height = rows * panelHeight + (rows - 1) * gap.y;
  return { height, grid: panelGrid(count, columns, width, height, gap) };
}

/// As many columns of at least `minWidth` pixels as fit, at most `max`.
const columnsThatFit = (place, margin, minWidth, max) => Math.max(1, Math.min(max, Math.floor((place.clientWidth - margin.l - margin.r) / minWidth) || 1));

function axisStyle(extra) {
  return { color: colorOf("--soft"), gridcolor: colorOf("--line"), zerolinecolor: colorOf("--line"), linecolor: colorOf("--line"), tickfont: { size: 11 }, ...extra };
}

const axisTitle = (text) => ({ title: { text, standoff: 6, font: { size: 11 } } });

/// A title above the panel's left corner.
function panelTitle(rectangle, text, extra) {
  return { text, align: "left", xref: "paper", yref: "paper", x: rectangle.x[0], y: rectangle.y[1], xanchor: "left", yanchor: "bottom", showarrow: false, font: { size: 12 }, ...extra };
}

/// A figure's layout: transparent, in the page's colours, its legend above the panels.
function plotLayout(place, height, margin, extra) {
  const font = { family: FONT, size: 12, color: colorOf("--ink") };
  return {
    width: place.clientWidth, height: height + margin.t + margin.b, margin,
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font,
    legend: { orientation: "h", x: 0, y: 1 + 30 / height, yanchor: "bottom" }, showlegend: true, annotations: [],
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colorOf("--line"), activecolor: colorOf("--accent") },
    hoverlabel: { align: "left", bgcolor: colorOf("--card"), bordercolor: colorOf("--line"), font: { ...font } },
    ...extra,
  };
}

/// A figure's buttons; `name` is that of the file that a picture is saved to.
function plotConfig(name) {
  return { displaylogo: false, displayModeBar: window.innerWidth > 640 ? "hover" : false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"], toImageButtonOptions: { format: "svg", filename: `longca-${name}` } };
}

/// Lists each legend group once.
function listGroupsOnce(traces) {
  const seen = new Set();
  for (const trace of traces) {
    trace.showlegend = !seen.has(trace.legendgroup);
    seen.add(trace.legendgroup);
  }
}

// The two ways to lay out masks and lengths.
const layouts = {
  length: { panel: (cell) => cell.tokens, panelText: (tokens) => `${tokensText(tokens)} tokens`, panels: data.tokens, group: (cell) => cell.mask, groupText: wrapName, groups: data.masks, minWidth: Infinity, height: 300 },
  mask: { panel: (cell) => cell.mask, panelText: String, panels: data.masks, group: (cell) => cell.tokens, groupText: tokensText, groups: data.tokens, minWidth: 270, height: 210 },
};

function hoverText(cell) {
  const metrics = cell.metrics;
  const lines = [`<b>${plotText(cell.kernel)}</b> · ${plotText(cell.mask)} · ${tokensText(cell.tokens)} · ${cell.pass}`];
  if (settingText(cell)) lines.push(plotText(settingText(cell)));
  if (rateOf(cell) === undefined) lines.push(plotText(`${cell.status}: ${cell.reason}`).replace(/(.{60,}?) /g, "$1<br>"));
  else {
    const interval = metrics.time_ci_pct === undefined ? "" : ` ± ${metrics.time_ci_pct.toFixed(2)} %`;
    lines.push(`${figureText(rateOf(cell))} ${data.unit.name} · ${figureText(metrics.time_ms)} ms${interval}`);
  }
  if (metrics.peak_bytes !== undefined) lines.push(`memory ${bytesText(metrics.peak_bytes)}`);
  if (largestError(cell) !== undefined) lines.push(`error ${errorText(largestError(cell))}`);
  return lines.join("<br>");
}

// Panels with more bars have no marks in the places of missing bars.
const MAX_MARKED_BARS = 24;

/// The cells of those kernels (and settings) that have some number.
function withNumbers(cells, figure) {
  const name = (cell) => `${cell.kernel} ${settingText(cell)}`;
  const named = new Set(cells.filter((cell) => figure.value(cell) !== undefined).map(name));
  return cells.filter((cell) => named.has(name(cell)));
}

function barTrace(cells, layout, figure, axis, series) {
  const values = cells.map((cell) => figure.value(cell) ?? null);
  return {
    type: "bar",
    name: plotText(series.name),
    legendgroup: series.name,
    x: cells.map((cell) => layout.groupText(layout.group(cell))),
    y: values,
    text: cells.map((cell) => (figure.marks && figure.value(cell) === undefined ? markOf(cell.status) : "")),
    textposition: "outside",
    textangle: 0,
    cliponaxis: false,
    constraintext: "none",
    textfont: { size: 12, color: colorOf("--ink") },
    hovertext: cells.map(hoverText),
    hovertemplate: "%{hovertext}<extra></extra>",
    marker: { color: series.color, pattern: { shape: series.pattern, fillmode: "overlay", size: 5, solidity: 0.35 } },
    xaxis: `x${axis}`,
    yaxis: `y${axis}`,
  };
}

const PATTERNS = ["", "/", ".", "x", "-", "|", "\\", "+"];

/// One series per kernel and setting, with the kernel's colour and the setting's pattern.
function seriesOf(cells) {
  const settings = [...new Set(data.cells.filter(isSingle).map(settingText))];
  const series = new Map();
  for (const kernel of data.kernels) {
    for (const setting of settings) {
      const own = cells.filter((cell) => cell.kernel === kernel && settingText(cell) === setting);
      const name = setting ? `${kernel} · ${setting}` : kernel;
      if (own.length) series.set(name, { name, cells: own, color: kernelColor(kernel), pattern: PATTERNS[settings.indexOf(setting) % PATTERNS.length] });
    }
  }
  return [...series.values()];
}

function drawFigure(name, cells, figure) {
  const place = document.getElementById(`plot-${name}`);
  document.getElementById(`figure-${name}`).hidden = cells.length === 0;
  if (cells.length === 0) return Plotly.purge(place);
  const layout = layouts[document.getElementById("panels").value];
  const panels = layout.panels.filter((panel) => cells.some((cell) => layout.panel(cell) === panel));
  const groups = layout.groups.filter((group) => cells.some((cell) => layout.group(cell) === group)).map(layout.groupText);
  const margin = { l: 62, r: 8, t: 58, b: layout === layouts.length ? 64 : 34 };
  const width = place.clientWidth - margin.l - margin.r;
  const isCrowded = groups.length * seriesOf(cells).length > MAX_MARKED_BARS;
  const minWidth = Math.max(layout.minWidth, layout === layouts.mask && isCrowded ? groups.length * 44 : 0);
  const columns = columnsThatFit(place, margin, minWidth, panels.length);
  const isNarrow = width / columns / groups.length < 70 && layout === layouts.length;
  if (isNarrow) margin.b = 130;
  const gap = { x: 40, y: layout === layouts.length ? margin.b + 34 : 66 };
  const { height, grid } = arrangePanels(place, margin, panels.length, columns, layout.height, gap);
  const series = seriesOf(isCrowded ? withNumbers(cells, figure) : cells);
  const bars = { ...figure, marks: !isCrowded };
  const isLog = figure.spans(cells);
  const traces = [];
  const plot = plotLayout(place, height, margin, { barmode: "group", bargap: 0.22, bargroupgap: 0.04 });
  panels.forEach((panel, i) => {
    const axis = i === 0 ? "" : String(i + 1);
    plot[`xaxis${axis}`] = axisStyle({ anchor: `y${axis}`, domain: grid[i].x, categoryorder: "array", categoryarray: groups, type: "category", range: [-0.5, groups.length - 0.5], showgrid: false, tickangle: isNarrow ? -60 : 0, ...(isNarrow && { tickvals: groups, ticktext: groups.map((text) => text.replaceAll("<br>", "")) }) });
    plot[`yaxis${axis}`] = axisStyle({ anchor: `x${axis}`, domain: grid[i].y, nticks: 6, ...(isLog ? { type: "log", dtick: 1 } : { rangemode: "tozero" }), ...(i > 0 && { matches: "y" }), ...(i % columns === 0 && axisTitle(figure.unit)) });
    plot.annotations.push(panelTitle(grid[i], `<b>${plotText(layout.panelText(panel))}</b>`));
    for (const one of series) {
      const own = one.cells.filter((cell) => layout.panel(cell) === panel);
      if (own.length === 0) continue;
      traces.push(barTrace(own, layout, bars, axis, one));
    }
  });
  listGroupsOnce(traces);
  return Plotly.react(place, traces, plot, plotConfig(name));
}

/// The pass of each kernel and problem that took most memory.
function memoryCells(cells) {
  const largest = new Map();
  for (const cell of cells) {
    const key = JSON.stringify([cell.kernel, cell.mask, cell.tokens, cell.setting]);
    const other = largest.get(key);
    if (!other || (cell.metrics.peak_bytes ?? -1) > (other.metrics.peak_bytes ?? -1)) largest.set(key, cell);
  }
  return [...largest.values()];
}

function drawPlots() {
  if (typeof Plotly === "undefined") return;
  const cells = shownCells().filter(isSingle);
  for (const pass of ["forward", "backward"]) {
    drawFigure(pass, cells.filter((cell) => cell.pass === pass), { value: rateOf, unit: data.unit.name, spans: () => false });
  }
  const memory = memoryCells(cells);
  const largest = Math.max(0, ...memory.map((cell) => cell.metrics.peak_bytes ?? 0));
  const [unit, bytes] = largest >= 4 * 2 ** 30 ? ["GiB", 2 ** 30] : ["MiB", 2 ** 20];
  const value = (cell) => (cell.metrics.peak_bytes === undefined ? undefined : cell.metrics.peak_bytes / bytes);
  // Logarithmic if one kernel, whose memory grows with the square of the length, would flatten the others.
  const spans = (shown) => Math.max(...shown.map((cell) => value(cell) ?? 0)) > 64 * Math.min(...shown.map((cell) => value(cell) ?? Infinity));
  drawFigure("memory", largest > 0 ? memory : [], { value, unit, spans });
}

/// Explains the marks of some cells: "X unsupported, E out of memory".
const marksText = (cells) => data.marks.filter((known) => cells.some((cell) => cell.status === known.status)).map((known) => `${known.mark} ${known.words}`).join(", ");

function explainMarks() {
  const single = marksText(data.cells.filter(isSingle));
  const overRanks = marksText(data.cells.filter(isOverRanks));
  document.getElementById("marks").textContent = single && `Cells without a number: ${single}.`;
  document.getElementById("rank-marks").textContent = overRanks && `Ranks without a number: ${overRanks}; the table says why.`;
}

/// Cells with a clock and power trace, in the order of the run (data.cells is sorted by mask and
/// length).
const tracedCells = (cells) => cells.filter((cell) => cell.trace).sort((a, b) => a.order - b.order);

/// One line through all cells, interrupted between them; x in seconds of timed work.
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

/// Shades the cells that were throttled.
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
  Plotly.react(place, [
    traceLine(cells, clock, { name: "SM clock", line: { color: PALETTE[0], width: 1.5 }, yaxis: "y" }),
    traceLine(cells, power, { name: "power", line: { color: PALETTE[1], width: 1.5 }, yaxis: "y2" }),
  ], plotLayout(place, 282, { l: 62, r: 8, t: 34, b: 44 }, {
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" }, shapes: throttledShapes(cells),
    xaxis: axisStyle({ ...axisTitle("seconds of timed work"), anchor: "y2" }),
    yaxis: axisStyle({ ...axisTitle("MHz"), domain: [0.54, 1], rangemode: "tozero" }),
    yaxis2: axisStyle({ ...axisTitle("W"), domain: [0, 0.46], rangemode: "tozero" }),
  }), { displaylogo: false, displayModeBar: false });
}
