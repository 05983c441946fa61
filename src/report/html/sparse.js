// Block-sparse cells compared with the fastest dense kernel, a line per kernel and a panel per length:
// time ÷ dense over density, and speed-up over kept mass.

const isSparse = (cell) => cell.line !== undefined;
const sparseLine = (cell) => data.sparse.lines[cell.line];
const sparseGroup = (cell) => data.sparse.groups[sparseLine(cell).group];
const sparseTable = (cell) => data.sparse.tables[sparseGroup(cell).table];
const denseOf = (cell) => sparseGroup(cell).dense ?? undefined;

const isTime = (value) => value !== undefined && value > 0;
function quotient(value, of) {
  return isTime(value) && isTime(of) ? value / of : undefined;
}
const okMetric = (cell, name) => (cell.status === "ok" ? cell.metrics[name] : undefined);
const timeOfDense = (cell) => quotient(okMetric(cell, "time_ms"), denseOf(cell)?.time_ms);
const totalOfDense = (cell) => quotient(okMetric(cell, "end_to_end_ms"), denseOf(cell)?.time_ms);
const memoryOfDense = (cell) => quotient(okMetric(cell, "peak_bytes"), denseOf(cell)?.peak_bytes);
const selectionShare = (cell) => quotient(okMetric(cell, "selection_ms"), okMetric(cell, "end_to_end_ms"));
/// A property of the blocks, not of the kernel.
const keptMass = (cell) => cell.metrics.kept_mass;

// The top of the scale; slower kernels would flatten the others.
const MAX_OF_DENSE = 2;

function sparseHoverText(cell) {
  const dense = denseOf(cell);
  const lines = [`<b>${plotText(cell.kernel)}</b> · density ${cell.density} · ${tokensText(cell.tokens)} · ${cell.pass}`];
  if (settingText(cell)) lines.push(plotText(settingText(cell)));
  lines.push(`${figureText(rateOf(cell))} ${data.unit.name} · ${figureText(cell.metrics.time_ms)} ms`);
  if (timeOfDense(cell) !== undefined) lines.push(`${figureText(timeOfDense(cell))} × the ${figureText(dense.time_ms)} ms of ${plotText(dense.kernel)}`);
  if (totalOfDense(cell) !== undefined) lines.push(`total ${figureText(cell.metrics.end_to_end_ms)} ms, ${figureText(totalOfDense(cell))} × dense`);
  if (selectionShare(cell) !== undefined) lines.push(`selection ${figureText(cell.metrics.selection_ms)} ms, ${percentText(100 * selectionShare(cell))} of that`);
  if (keptMass(cell) !== undefined) lines.push(`kept mass ${keptMass(cell).toFixed(3)}`);
  if (cell.metrics.error_full !== undefined) lines.push(`error of full attention ${figureText(cell.metrics.error_full)}`);
  if (sparseLine(cell).break_even) lines.push(`break-even ${plotText(sparseLine(cell).break_even)}`);
  return lines.join("<br>");
}

function sparseCurve(kernel, cells, figure, value, axis, style) {
  const own = cells.filter((cell) => cell.kernel === kernel && value(cell) !== undefined && figure.place(cell) !== undefined).sort((a, b) => a.density - b.density);
  if (own.length === 0) return [];
  return [{
    type: "scatter", mode: "lines+markers", name: plotText(kernel), legendgroup: kernel, showlegend: false,
    x: own.map(figure.place), y: own.map((cell) => figure.show(value(cell))),
    hovertext: own.map(sparseHoverText), hovertemplate: "%{hovertext}<extra></extra>",
    line: { color: kernelColor(kernel), width: 1.8, ...style.line }, marker: { color: kernelColor(kernel), size: 7, ...style.marker },
    xaxis: `x${axis}`, yaxis: `y${axis}`,
  }];
}

/// A straight line in every panel: the dense time, or the dense time × density.
function referenceLine(name, points, axis, dash) {
  return {
    type: "scatter", mode: "lines", name, legendgroup: name, legendrank: 2000, showlegend: false, hoverinfo: "skip",
    x: points.map((point) => point[0]), y: points.map((point) => point[1]), line: { color: colorOf("--soft"), dash, width: 1.5 }, xaxis: `x${axis}`, yaxis: `y${axis}`,
  };
}

const TOTAL = { line: { dash: "dash", width: 1.3 }, marker: { symbol: "diamond-open", size: 7 } };

function sparseTraces(cells, figure, axis) {
  const traces = data.kernels.flatMap((kernel) => [
    ...sparseCurve(kernel, cells, figure, timeOfDense, axis, {}),
    ...sparseCurve(kernel, cells, figure, totalOfDense, axis, TOTAL),
  ]);
  traces.push(referenceLine("fastest dense kernel", [[figure.left(cells), 1], [1, 1]], axis, "solid"));
  if (figure.hasShare) traces.push(referenceLine("dense × density", [[0, 0], [1, 1]], axis, "dot"));
  return traces;
}

function sparsePanelTitle(cell) {
  const dense = denseOf(cell);
  return `<b>${tokensText(cell.tokens)} tokens</b> <span style="font-size:10px">dense: ${plotText(dense.kernel)}, ${figureText(dense.time_ms)} ms</span>`;
}

function drawSparseFigure(name, cells, figure) {
  const place = document.getElementById(`plot-sparse-${name}`);
  const shown = cells.filter((cell) => timeOfDense(cell) !== undefined && figure.place(cell) !== undefined);
  document.getElementById(`figure-sparse-${name}`).hidden = shown.length === 0;
  if (shown.length === 0) return Plotly.purge(place);
  const panels = data.tokens.filter((tokens) => shown.some((cell) => cell.tokens === tokens));
  const margin = { l: 62, r: 14, t: 76, b: 46 };
  const columns = columnsThatFit(place, margin, 270, Math.min(panels.length, 4));
  const gap = { x: 44, y: 84 };
  const { height, grid } = arrangePanels(place, margin, panels.length, columns, 250, gap);
  const top = figure.top(shown);
  const plot = plotLayout(place, height, margin);
  const traces = [];
  panels.forEach((tokens, i) => {
    const axis = i === 0 ? "" : String(i + 1);
    const own = shown.filter((cell) => cell.tokens === tokens);
    plot[`xaxis${axis}`] = axisStyle({ anchor: `y${axis}`, domain: grid[i].x, range: [figure.left(shown), 1.02], ...(i >= panels.length - columns && axisTitle(figure.x)) });
    plot[`yaxis${axis}`] = axisStyle({ anchor: `x${axis}`, domain: grid[i].y, nticks: 6, range: [0, top], ...(i > 0 && { matches: "y" }), ...(i % columns === 0 && axisTitle(figure.y)) });
    plot.annotations.push(panelTitle(grid[i], sparsePanelTitle(own[0])));
    traces.push(...sparseTraces(own, figure, axis));
  });
  listGroupsOnce(traces);
  return Plotly.react(place, traces, plot, plotConfig(`sparse-${name}`));
}

/// The axes of the figures: `place` is the x of a cell, `show` the y of a ratio to dense.
const sparseFigures = {
  time: {
    x: "density", y: "time ÷ dense", hasShare: true, left: () => 0, place: (cell) => cell.density, show: (ratio) => ratio,
    top: (cells) => Math.min(MAX_OF_DENSE, 1.08 * Math.max(1, ...cells.map((cell) => Math.max(timeOfDense(cell), totalOfDense(cell) ?? 0)))),
  },
  mass: {
    x: "kept mass", y: "times dense speed", hasShare: false, place: keptMass, show: (ratio) => 1 / ratio,
    left: (cells) => Math.max(0, Math.floor(Math.min(...cells.map(keptMass)) * 10 - 0.5) / 10),
    top: (cells) => 1.08 * Math.max(1, ...cells.map((cell) => 1 / timeOfDense(cell))),
  },
};

/// Names the kernels that lie above the scale of the figure of times.
function explainBeyond(cells) {
  const beyond = data.kernels.filter((kernel) => {
    const ratios = cells.filter((cell) => cell.kernel === kernel).map(timeOfDense).filter((ratio) => ratio !== undefined);
    return ratios.length > 0 && Math.min(...ratios) > MAX_OF_DENSE;
  });
  document.getElementById("sparse-beyond").textContent = beyond.length ? `Above the scale, more than ${MAX_OF_DENSE} times dense: ${beyond.join(", ")}.` : "";
}

function drawSparsePlots() {
  if (!data.sparse || typeof Plotly === "undefined") return;
  const blocks = data.sparse.blocks[Number(document.getElementById("sparse-blocks").value)];
  const pass = document.getElementById("sparse-pass").value;
  const cells = shownCells().filter((cell) => isSparse(cell) && cell.pass === pass && sparseTable(cell).blocks === blocks);
  explainBeyond(cells);
  for (const [name, figure] of Object.entries(sparseFigures)) drawSparseFigure(name, cells, figure);
}

const sparseColumns = [
  { title: "mask", value: (cell) => cell.mask, order: (cell) => data.masks.indexOf(cell.mask) },
  { title: "tokens", number: true, value: (cell) => cell.tokens, text: (cell) => tokensText(cell.tokens) },
  ...axisColumns.filter((column) => column.title !== "density"),
  { title: "pass", value: (cell) => cell.pass },
  { title: "kernel", value: (cell) => cell.kernel },
  { title: "density", number: true, value: (cell) => cell.density },
  { title: data.unit.name, number: true, value: rateOf, text: (cell) => figureText(rateOf(cell)) },
  { title: "ms", number: true, value: (cell) => okMetric(cell, "time_ms"), text: (cell) => figureText(okMetric(cell, "time_ms")) },
  { title: "dense kernel", value: (cell) => denseOf(cell)?.kernel },
  { title: "÷ dense", number: true, value: timeOfDense, text: (cell) => figureText(timeOfDense(cell)) },
  { title: "break-even", value: (cell) => sparseLine(cell).break_even || undefined },
  { title: "selection ms", number: true, optional: "selection_ms", value: (cell) => cell.metrics.selection_ms, text: (cell) => figureText(cell.metrics.selection_ms) },
  { title: "total ms", number: true, optional: "end_to_end_ms", value: (cell) => cell.metrics.end_to_end_ms, text: (cell) => figureText(cell.metrics.end_to_end_ms) },
  { title: "total ÷ dense", number: true, optional: "end_to_end_ms", value: totalOfDense, text: (cell) => figureText(totalOfDense(cell)) },
  { title: "break-even of total", optional: "end_to_end_ms", value: (cell) => sparseLine(cell).break_even_total || undefined },
  { title: "selection of total", number: true, optional: "selection_ms", value: selectionShare, text: (cell) => (selectionShare(cell) === undefined ? "" : percentText(100 * selectionShare(cell))) },
  { title: "kept mass", number: true, optional: "kept_mass", value: keptMass, text: (cell) => keptMass(cell)?.toFixed(3) ?? "" },
  { title: "error of full", number: true, optional: "error_full", value: (cell) => cell.metrics.error_full, text: (cell) => figureText(cell.metrics.error_full) },
  { title: "memory", number: true, value: (cell) => cell.metrics.peak_bytes, text: (cell) => bytesText(cell.metrics.peak_bytes) },
  { title: "of dense", number: true, value: memoryOfDense, text: (cell) => memoryOfDense(cell)?.toFixed(2) ?? "" },
  { title: "status", value: (cell) => cell.status },
].filter((column) => !column.optional || data.cells.some((cell) => isSparse(cell) && cell.metrics[column.optional] !== undefined));

const sparseCells = makeTable("sparse-cells", "sparse-cell-count", sparseColumns, isSparse);

function showSparse() {
  document.getElementById("sparse-section").hidden = !data.sparse;
  if (!data.sparse) return;
  document.getElementById("sparse-setting").textContent = data.sparse.common;
  data.sparse.blocks = [...new Set(data.sparse.tables.map((table) => table.blocks))];
  document.getElementById("sparse-blocks").append(...data.sparse.blocks.map((blocks, i) => element("option", { value: String(i), textContent: blocks })));
  const passes = data.passes.filter((pass) => data.sparse.tables.some((table) => table.pass === pass));
  document.getElementById("sparse-pass").append(...passes.map((pass) => element("option", { value: pass, textContent: pass })));
  for (const id of ["sparse-blocks", "sparse-pass"]) document.getElementById(id).addEventListener("change", drawSparsePlots);
}
