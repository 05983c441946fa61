// Cells over ranks: how the schemes of context parallelism scale, a line per scheme over the numbers
// of ranks, a panel per mask.

/// Whether a cell has the chosen length: one in total, or one per rank.
function chosenScaling() {
  const scaling = data.ranks.scalings[Number(document.getElementById("scaling").value)];
  return (cell) => cell.tokens === scaling.tokens * (scaling.per_rank ? cell.ranks : 1);
}

function rankHoverText(cell) {
  const metrics = cell.metrics;
  const lines = [`<b>${plotText(cell.row)}</b> · ${cell.ranks} ranks · ${plotText(cell.mask)} · ${tokensText(cell.tokens)} · ${cell.pass}`];
  lines.push(plotText([cell.kernel, cell.shard, cell.transport, settingText(cell)].filter(Boolean).join(" · ")));
  const share = efficiency(cell) === undefined ? "" : ` · ${efficiency(cell).toFixed(2)} of ${cell.baseline.name}`;
  lines.push(`${figureText(rateOf(cell))} ${data.ranks.unit.name} per rank${share}`);
  lines.push(`${figureText(metrics.time_ms)} ms, of it ${figureText(metrics.exposed_comm_ms)} communication (${percentText(exposedShare(cell))})`);
  if (metrics.bytes_sent !== undefined) lines.push(`sent ${bytesText(metrics.bytes_sent)}, formula ${bytesText(metrics.bytes_formula)}, lower bound ${bytesText(metrics.bytes_least)}`);
  if (metrics.imbalance !== undefined) lines.push(`imbalance ${metrics.imbalance.toFixed(3)} of area, ${metrics.time_imbalance?.toFixed(3) ?? "–"} of time`);
  if (largestError(cell) !== undefined) lines.push(`error ${errorText(largestError(cell))}`);
  return lines.join("<br>");
}

/// A line of one value of a series; bars if there is only one number of ranks.
function rankLine(series, value, axis) {
  const cells = series.cells.filter((cell) => value(cell) !== undefined);
  if (series.isAlone) return { ...rankBar(series, cells, axis), y: cells.map(value) };
  return { ...rankPoints(series, cells, axis), mode: "lines+markers", y: cells.map(value), line: { color: series.color, dash: series.dash, width: 1.8 } };
}

/// A second value of the series: a thin dotted line, or a diamond on the bar.
function dottedLine(series, value, axis) {
  const cells = series.cells.filter((cell) => value(cell) !== undefined);
  const points = { ...rankPoints(series, cells, axis), y: cells.map(value) };
  if (series.isAlone) return { ...points, mode: "markers", offsetgroup: series.name, marker: diamond() };
  return { ...points, mode: "lines", line: { color: series.color, dash: "dot", width: 1.2 } };
}

function rankPoints(series, cells, axis) {
  return {
    type: "scatter", name: plotText(series.name), legendgroup: series.group, x: cells.map((cell) => String(cell.ranks)),
    hovertext: cells.map(rankHoverText), hovertemplate: "%{hovertext}<extra></extra>",
    marker: { color: series.color, symbol: series.symbol, size: 7 }, xaxis: `x${axis}`, yaxis: `y${axis}`, cliponaxis: false,
  };
}

const diamond = () => ({ color: colorOf("--card"), line: { color: colorOf("--ink"), width: 1 }, symbol: "diamond", size: 6 });

/// The rate without communication, a grey line per kernel.
function baselineTraces(cells, axis) {
  const withBaseline = cells.filter((cell) => cell.baseline);
  const name = (cell) => [cell.baseline.name, new Set(cells.map((c) => c.kernel)).size > 1 ? cell.kernel : "", settingText(cell)].filter(Boolean).join(" · ");
  return [...new Set(withBaseline.map(name))].map((title) => {
    const byRanks = new Map(withBaseline.filter((cell) => name(cell) === title).map((cell) => [cell.ranks, cell]));
    const own = [...byRanks.values()].sort((a, b) => a.ranks - b.ranks);
    return {
      type: "scatter", mode: own.length > 1 ? "lines" : "markers", name: plotText(title), legendgroup: title, legendrank: 2000,
      x: own.map((cell) => String(cell.ranks)), y: own.map((cell) => cell.baseline.tflops * data.ranks.unit.per_tflops),
      line: { color: colorOf("--soft"), dash: "dash", width: 1.6 }, marker: { color: colorOf("--soft"), symbol: "line-ew-open", size: 60 },
      hovertemplate: `${plotText(title)}: %{y:.4g} ${data.ranks.unit.name}<extra></extra>`, xaxis: `x${axis}`, yaxis: `y${axis}`,
    };
  });
}

/// What the bars of a series over ranks have in common.
function rankBar(series, cells, axis) {
  return {
    type: "bar", name: plotText(series.name), legendgroup: series.group, offsetgroup: series.name, x: cells.map((cell) => String(cell.ranks)),
    hovertext: cells.map(rankHoverText), hovertemplate: "%{hovertext}<extra></extra>", xaxis: `x${axis}`, yaxis: `y${axis}`,
    marker: { color: series.color, pattern: { shape: series.pattern, fillmode: "overlay", size: 5, solidity: 0.3 } },
  };
}

/// Two stacked bars: the steps alone, and what communication adds. If noise makes that negative the
/// upper bar is empty.
function stackTraces(series, axis) {
  const cells = series.cells.filter((cell) => cell.metrics.compute_ms !== undefined && cell.metrics.time_ms !== undefined);
  const compute = cells.map((cell) => Math.min(cell.metrics.compute_ms, cell.metrics.time_ms));
  const bar = rankBar(series, cells, axis);
  return [
    { ...bar, y: compute },
    { ...bar, y: cells.map((cell, i) => cell.metrics.time_ms - compute[i]), base: compute, marker: { color: series.color, opacity: 0.32, line: { color: series.color, width: 1 } } },
  ];
}

/// A bar of the bytes sent, a stroke across it at the formula, a diamond at the lower bound.
function bytesTraces(series, axis, bytes) {
  const cells = series.cells.filter((cell) => cell.metrics.bytes_sent !== undefined);
  const bar = rankBar(series, cells, axis);
  const values = (name) => cells.map((cell) => (cell.metrics[name] === undefined ? null : cell.metrics[name] / bytes));
  const mark = (name, marker) => ({ ...bar, type: "scatter", mode: "markers", y: values(name), marker, cliponaxis: false });
  const ink = { color: colorOf("--ink"), line: { color: colorOf("--ink"), width: 2 } };
  return [
    { ...bar, y: values("bytes_sent") },
    mark("bytes_formula", { ...ink, symbol: "line-ew-open", size: 12 }),
    mark("bytes_least", diamond()),
  ];
}

function drawRankFigure(name, cells, names, figure) {
  const place = document.getElementById(`plot-ranks-${name}`);
  document.getElementById(`figure-ranks-${name}`).hidden = cells.length === 0;
  if (cells.length === 0) return Plotly.purge(place);
  const panels = data.masks.filter((mask) => cells.some((cell) => cell.mask === mask));
  const ranks = [...new Set(cells.map((cell) => cell.ranks))].sort((a, b) => a - b).map(String);
  const margin = { l: 62, r: 8, t: 94 + NOTE_LINE, b: 42 };
  const columns = columnsThatFit(place, margin, 270, Math.min(panels.length, 4));
  const gap = { x: 44, y: 74 + NOTE_LINE };
  const { height, grid } = arrangePanels(place, margin, panels.length, columns, 230, gap);
  const noteOf = (own) => (figure.baseline ? absentText(own, names, ranks.length === 1) : "");
  const noteLetters = Math.floor((place.clientWidth - margin.l - margin.r - (columns - 1) * gap.x) / columns / NOTE_LETTER);
  const traces = [];
  const plot = plotLayout(place, height, margin, {
    barmode: "group", bargap: 0.2, bargroupgap: 0.06, scattermode: figure.groupsPoints ? "group" : "overlay", scattergap: 0.2,
    legend: { orientation: "h", x: 0, y: 1 + (30 + NOTE_LINE) / height, yanchor: "bottom" },
  });
  panels.forEach((panel, i) => {
    const axis = i === 0 ? "" : String(i + 1);
    const own = cells.filter((cell) => cell.mask === panel);
    plot[`xaxis${axis}`] = axisStyle({ anchor: `y${axis}`, domain: grid[i].x, type: "category", categoryorder: "array", categoryarray: ranks, range: [-0.5, ranks.length - 0.5], showgrid: false, ...(i >= panels.length - columns && axisTitle("ranks")) });
    plot[`yaxis${axis}`] = axisStyle({ anchor: `x${axis}`, domain: grid[i].y, nticks: 6, rangemode: "tozero", ...figure.axis, ...(!figure.ownScale && i > 0 && { matches: "y" }), ...(i % columns === 0 && axisTitle(figure.unit)) });
    const note = noteOf(own);
    const noteLines = note && wrapText(note, noteLetters, NOTE_LINES).map(plotText).join("<br>");
    plot.annotations.push(panelTitle(grid[i], `<b>${plotText(panel)}</b>${note && `<br><span style="font-size:10px">${noteLines}</span>`}`, { hovertext: plotText(note) }));
    if (figure.baseline) traces.push(...baselineTraces(own, axis));
    for (const series of rankSeries(own.filter((cell) => rateOf(cell) !== undefined), names)) {
      traces.push(...figure.traces({ ...series, isAlone: ranks.length === 1 }, axis));
    }
  });
  if (names.isSplit) {
    const all = rankSeries(cells.filter((cell) => rateOf(cell) !== undefined), names);
    if (all.length > 0) traces.unshift(...legendTraces(all, ranks, traces.some((trace) => trace.type === "bar")));
  }
  listGroupsOnce(traces);
  Plotly.react(place, traces, plot, plotConfig(`ranks-${name}`));
  // A variant's entry in a split legend has no group of its own to hide.
  for (const event of ["plotly_legendclick", "plotly_legenddoubleclick"]) {
    place.removeAllListeners(event);
    place.on(event, (click) => !click.data[click.curveNumber].legendgroup.startsWith(VARIANT_GROUP));
  }
}

/// The unit, and its bytes, that gives a figure's axis few digits.
function bytesUnit(cells) {
  const largest = Math.max(0, ...cells.map((cell) => cell.metrics.bytes_sent ?? 0));
  return [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]].find(([, bytes]) => largest >= 4 * bytes) ?? ["bytes", 1];
}

const hasOneCount = (cells) => new Set(cells.map((cell) => cell.ranks)).size === 1;

function drawRankPlots() {
  if (!data.ranks || typeof Plotly === "undefined") return;
  const isChosen = chosenScaling();
  const shown = shownCells().filter(isOverRanks).filter(isChosen);
  // From all cells, so that a series keeps its name and look when filters hide others.
  const names = rankNames(data.cells.filter(isOverRanks).filter(isChosen));
  for (const pass of ["forward", "backward"]) {
    drawRankFigure(pass, shown.filter((cell) => cell.pass === pass), names, { unit: `${data.ranks.unit.name} per rank`, baseline: true, traces: (series, axis) => [rankLine(series, rateOf, axis)] });
  }
  const pass = document.getElementById("ranks-pass").value;
  const cells = shown.filter((cell) => cell.pass === pass && rateOf(cell) !== undefined);
  const metric = (name) => (cell) => cell.metrics[name];
  const having = (value) => cells.filter((cell) => value(cell) !== undefined);
  drawRankFigure("exposed", having(metric("compute_ms")), names, { unit: "ms", ownScale: true, traces: stackTraces });
  const [unit, bytes] = bytesUnit(cells);
  drawRankFigure("bytes", having(metric("bytes_sent")), names, { unit, groupsPoints: true, traces: (series, axis) => bytesTraces(series, axis, bytes) });
  drawRankFigure("imbalance", having(metric("imbalance")), names, { unit: "largest / mean", groupsPoints: hasOneCount(cells), axis: hasOneCount(cells) ? {} : { rangemode: "normal" }, traces: (series, axis) => [
    rankLine(series, metric("imbalance"), axis),
    dottedLine(series, metric("time_imbalance"), axis),
  ] });
  drawRankFigure("error", having(largestError), names, { unit: "relative error", axis: { tickformat: ".1e" }, traces: (series, axis) => [rankLine(series, largestError, axis)] });
}

const rankColumns = [
  { title: "mask", value: (cell) => cell.mask, order: (cell) => data.masks.indexOf(cell.mask) },
  { title: "tokens", number: true, value: (cell) => cell.tokens, text: (cell) => tokensText(cell.tokens) },
  { title: "ranks", number: true, value: (cell) => cell.ranks },
  { title: "scheme", value: (cell) => cell.row },
  { title: "shard", value: (cell) => cell.shard },
  { title: "kernel", value: (cell) => cell.kernel },
  ...axisColumns,
  { title: "pass", value: (cell) => cell.pass },
  { title: data.ranks?.unit.name ?? "", number: true, isRate: true, value: rateOf, text: (cell) => figureText(rateOf(cell)) },
  { title: "efficiency", number: true, value: efficiency, text: (cell) => efficiency(cell)?.toFixed(2) ?? "" },
  { title: "ms", number: true, value: (cell) => cell.metrics.time_ms, text: (cell) => figureText(cell.metrics.time_ms) + (cell.stop === "time_limit" ? " ~" : "") },
  { title: "exposed ms", number: true, value: (cell) => cell.metrics.exposed_comm_ms, text: (cell) => figureText(cell.metrics.exposed_comm_ms) },
  { title: "exposed %", number: true, value: exposedShare, text: (cell) => percentText(exposedShare(cell)) },
  { title: "sent", number: true, value: (cell) => cell.metrics.bytes_sent, text: (cell) => bytesText(cell.metrics.bytes_sent) },
  { title: "formula", number: true, value: (cell) => cell.metrics.bytes_formula, text: formulaText },
  { title: "lower bound", number: true, value: (cell) => cell.metrics.bytes_least, text: (cell) => bytesText(cell.metrics.bytes_least) },
  { title: "imbalance", number: true, value: (cell) => cell.metrics.imbalance, text: (cell) => cell.metrics.imbalance?.toFixed(3) ?? "" },
  { title: "of time", number: true, value: (cell) => cell.metrics.time_imbalance, text: (cell) => cell.metrics.time_imbalance?.toFixed(3) ?? "" },
  { title: "memory", number: true, value: (cell) => cell.metrics.peak_bytes, text: (cell) => bytesText(cell.metrics.peak_bytes) },
  { title: "error", number: true, value: largestError, text: (cell) => errorText(largestError(cell)) },
  { title: "LSE error", number: true, value: (cell) => cell.metrics.error_lse, text: (cell) => errorText(cell.metrics.error_lse) },
  { title: "plan ms", number: true, value: (cell) => cell.metrics.plan_ms, text: (cell) => figureText(cell.metrics.plan_ms) },
  ...closingColumns,
];

const rankTable = makeTable("rank-cells", "rank-cell-count", rankColumns, isOverRanks);

/// "= 1.5 MiB" if the bytes sent equal the formula to the byte, else both to the byte.
function formulaText(cell) {
  const { bytes_sent: sent, bytes_formula: formula } = cell.metrics;
  if (formula === undefined || sent === undefined) return "";
  return sent === formula ? `= ${bytesText(formula)}` : `≠ ${formula} (sent ${sent})`;
}

function showRanks() {
  document.getElementById("ranks-section").hidden = !data.ranks;
  if (!data.ranks) return;
  const scaling = document.getElementById("scaling");
  scaling.append(...data.ranks.scalings.map((known, i) => element("option", { value: String(i), textContent: known.label })));
  const passes = data.passes.filter((pass) => data.cells.some((cell) => isOverRanks(cell) && cell.pass === pass));
  document.getElementById("ranks-pass").append(...passes.map((pass) => element("option", { value: pass, textContent: pass })));
  for (const id of ["scaling", "ranks-pass"]) document.getElementById(id).addEventListener("change", drawRankPlots);
}
