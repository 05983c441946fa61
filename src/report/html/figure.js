// Draws the figures that the program computed (report/data/figure.h) through plotly. Filters and
// choices only leave out panels, ticks and series; no value is computed here.

const MAX_SERIES = 8; // kMaxSeries of figure.h
const SYMBOLS = ["circle", "diamond", "square", "triangle-up", "triangle-down", "pentagon", "x", "star"];
const FONT = getComputedStyle(document.body).fontFamily;
const colorOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const hasPlots = document.getElementById("plotly") !== null;

// Plotly interprets some HTML in its texts.
const plotText = (text) => String(text).replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

const hasNumber = (series) => series.points.some(([, y]) => typeof y === "number");

/// The panel without what filters hide; undefined if nothing is left. Ticks close up.
function narrowPanel(kind, panel) {
  if (!agrees(panel.setting, state.choice[kind.kind]) || isHidden("mask", panel.mask)) return undefined;
  const series = panel.series
    .map((one) => ({ ...one, points: one.points.filter(([, , cell]) => passesFilters(cells[cell])) }))
    .filter((one) => one.points.length > 0);
  if (series.length === 0) return undefined;
  if (panel.ticks.length === 0) return { ...panel, series };
  const kept = panel.ticks.map((_, i) => i).filter((i) => series.some((one) => one.points.some(([x]) => x === i)));
  const place = (x) => kept.indexOf(x);
  return {
    ...panel, ticks: kept.map((i) => panel.ticks[i]),
    series: series.map((one) => ({ ...one, points: one.points.map(([x, ...others]) => [place(x), ...others]) })),
    references: panel.references.map((line) => ({ ...line, places: line.places.map(([x, y]) => [place(x), y]).filter(([x]) => x >= 0) })),
  };
}

/// The series with a number, those to draw first: what the reader switched on, then by weight.
function seriesOf(kind, panels) {
  const having = new Set(panels.flatMap((panel) => panel.series.filter(hasNumber).map((one) => one.series)));
  const byWeight = kind.series.map((style, index) => ({ ...style, index })).filter(({ index }) => having.has(index));
  const on = state.on[kind.kind];
  const first = [...byWeight.filter(({ name }) => on.includes(name)).sort((a, b) => on.indexOf(a.name) - on.indexOf(b.name)), ...byWeight.filter(({ name }) => !on.includes(name))];
  const drawn = new Set(first.filter(({ name }) => !state.off[kind.kind].has(name)).slice(0, MAX_SERIES).map(({ index }) => index));
  const slots = byWeight.filter(({ index }) => drawn.has(index)).map(({ index }) => index);
  return byWeight.map((style) => ({ ...style, slot: slots.indexOf(style.index) }));
}

function toggleSeries(kind, { name, slot }) {
  const on = state.on[kind.kind].filter((known) => known !== name);
  if (slot >= 0) state.off[kind.kind].add(name);
  else {
    state.off[kind.kind].delete(name);
    on.unshift(name);
  }
  state.on[kind.kind] = on.slice(0, MAX_SERIES);
  update();
}

const SHAPES = { circle: "●", diamond: "◆", square: "■", "triangle-up": "▲", "triangle-down": "▼", pentagon: "⬟", x: "✖", star: "★" };

/// The legend, in HTML, so that it wraps: a click draws a series or leaves it out.
function legendOf(kind, figure, series, panels) {
  const items = series.map((style) => {
    const isDrawn = style.slot >= 0;
    const sign = element("i", { className: "sign", textContent: isDrawn && figure.mark === "lines" ? SHAPES[SYMBOLS[style.slot]] : "■" });
    sign.style.color = seriesColor(style);
    const button = element("button", { type: "button", className: "series" }, sign, style.name);
    button.setAttribute("aria-pressed", String(isDrawn));
    button.addEventListener("click", () => toggleSeries(kind, style));
    return button;
  });
  const notes = [...new Set(panels.flatMap((panel) => panel.references.map((line) => `${line.dotted ? "··" : "– –"} ${line.name}`)))];
  if (panels.some((panel) => panel.series.some((one) => one.dashed))) notes.push(`dashed, open: ${figure.dashed}`);
  const statuses = new Set(panels.flatMap((panel) => panel.series.flatMap((one) => one.points.filter(([, y]) => typeof y !== "number").map(([, , cell]) => cells[cell].status))));
  notes.push(...data.marks.filter(({ status }) => statuses.has(status)).map(({ mark, words }) => `${mark} ${words}`));
  return [...items, ...notes.map((text) => element("span", { className: "note", textContent: text }))];
}

function hoverText(cell) {
  const { metrics } = cell;
  const kind = data.kinds.find((known) => known.kind === cell.kind);
  const head = [cell.row, cell.kernel, cell.mask, tokensText(cell.tokens), cell.ranks && `${cell.ranks} ranks`, cell.pass].filter(Boolean);
  const lines = [`<b>${plotText(head[0])}</b> · ${plotText(head.slice(1).join(" · "))}`];
  if (settingText(cell.setting)) lines.push(plotText(settingText(cell.setting)));
  if (metrics.rate === undefined) lines.push(plotText(`${cell.status}: ${cell.reason ?? ""}`).replace(/(.{60,}?) /g, "$1<br>"));
  else {
    const interval = metrics.time_ci_pct === undefined ? "no interval" : `± ${metrics.time_ci_pct.toFixed(2)} %`;
    lines.push(`${figureText(metrics.rate)} ${kind.unit} · ${figureText(metrics.time_ms)} ms, ${interval}`);
  }
  if (metrics.exposed_pct !== undefined) lines.push(`communication ${percentText(metrics.exposed_pct)} of it`);
  if (metrics.of_dense !== undefined) lines.push(`${figureText(metrics.of_dense)} × the time of dense ${plotText(cell.dense)}`);
  if (metrics.total_of_dense !== undefined) lines.push(`with selection and planning ${figureText(metrics.total_of_dense)} ×`);
  if (cell.break_even) lines.push(`break-even ${plotText(cell.break_even)}`);
  if (metrics.peak_bytes !== undefined) lines.push(`memory ${bytesText(metrics.peak_bytes)}`);
  lines.push("<i>click for samples and command</i>");
  return lines.join("<br>");
}

// What each kind of mark adds to a figure; a point is [x, y, cell, part, stroke, diamond].

function trace(figure, style, points, axis, extra) {
  return {
    name: plotText(style.name), x: points.map(([x]) => x), y: points.map(([, y]) => y ?? null), customdata: points.map(([, , cell]) => cell),
    hovertext: points.map(([, , cell]) => hoverText(cells[cell])), hovertemplate: "%{hovertext}<extra></extra>", showlegend: false, xaxis: `x${axis}`, yaxis: `y${axis}`, ...extra,
  };
}

function lineTrace(figure, style, one, axis) {
  const symbol = SYMBOLS[style.slot] + (one.dashed ? "-open" : "");
  return trace(figure, style, one.points, axis, {
    type: "scatter", mode: "lines+markers", cliponaxis: Boolean(figure.y_max),
    line: { color: seriesColor(style), width: 1.8, dash: one.dashed ? "dash" : "solid" }, marker: { color: seriesColor(style), symbol, size: 7 },
  });
}

const GROUP_WIDTH = 0.84; // of the distance between two ticks, as in gnuplot_figure.cpp

/// Bars beside those of the panel's other series.
function barTraces(figure, style, one, axis, slot, of) {
  const width = GROUP_WIDTH / of;
  const points = one.points.map(([x, ...others]) => [x + (slot + 0.5) * width - GROUP_WIDTH / 2, ...others]);
  const numbers = points.filter(([, y]) => typeof y === "number");
  const bar = { type: "bar", width: 0.9 * width, marker: { color: seriesColor(style) } };
  const marks = points.filter(([, y]) => typeof y !== "number");
  const traces = figure.mark === "stacks"
    ? [trace(figure, style, numbers.map(([x, , cell, part]) => [x, part, cell]), axis, bar),
      { ...trace(figure, style, numbers, axis, { ...bar, base: numbers.map(([, , , part]) => part), marker: { color: `${seriesColor(style)}52`, line: { color: seriesColor(style), width: 1 } } }), y: numbers.map(([, y, , part]) => y - part) }]
    : [trace(figure, style, numbers, axis, bar)];
  if (marks.length > 0) traces.push({ ...trace(figure, style, marks, axis, { type: "scatter", mode: "text", textposition: "top center", textfont: { size: 12, color: seriesColor(style) } }), y: marks.map(() => 0), text: marks.map(([, , cell]) => markOf(cells[cell].status)) });
  const strokes = numbers.filter((point) => typeof point[4] === "number");
  if (strokes.length > 0) traces.push({ ...trace(figure, style, strokes, axis, { type: "scatter", mode: "markers", marker: { symbol: "line-ew-open", size: 11, color: colorOf("--ink"), line: { width: 2, color: colorOf("--ink") } } }), y: strokes.map((point) => point[4]) });
  return traces.concat(diamondTraces(figure, style, numbers, axis));
}

function diamondTraces(figure, style, points, axis) {
  const own = points.filter((point) => typeof point[1] === "number" && typeof point[5] === "number");
  if (own.length === 0) return [];
  return [{ ...trace(figure, style, own, axis, { type: "scatter", mode: "markers", marker: { symbol: "diamond", size: 6, color: colorOf("--card"), line: { width: 1, color: colorOf("--ink") } } }), y: own.map((point) => point[5]) }];
}

function panelTraces(figure, panel, series, axis) {
  const drawn = panel.series.map((one) => ({ one, style: series.find(({ index }) => index === one.series) }))
    .filter(({ one, style }) => style?.slot >= 0 && hasNumber(one)).sort((a, b) => a.style.slot - b.style.slot);
  const references = panel.references.filter((line) => line.places.length > 0).map((line) => {
    const places = line.places.length > 1 ? line.places : [-0.5, 0.5].map((x) => [x, line.places[0][1]]);
    return { type: "scatter", mode: "lines", name: plotText(line.name), x: places.map(([x]) => x), y: places.map(([, y]) => y), showlegend: false,
      line: { color: colorOf("--soft"), width: 1.5, dash: line.dotted ? "dot" : "dash" }, hovertemplate: `${plotText(line.name)}: %{y:.4g}<extra></extra>`, xaxis: `x${axis}`, yaxis: `y${axis}` };
  });
  const traces = drawn.flatMap(({ one, style }, i) => figure.mark === "lines"
    ? [lineTrace(figure, style, one, axis), ...diamondTraces(figure, style, one.points, axis)]
    : barTraces(figure, style, one, axis, i, drawn.length));
  return figure.mark === "lines" ? [...references, ...traces] : [...traces, ...references];
}

const NOTE_LETTER = 5.6; // pixels
const NOTE_LINES = 2;

/// Breaks a text into at most NOTE_LINES lines; the last ends in "…" if the text is cut.
function wrapNote(text, letters) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines.at(-1) && lines.at(-1).length + 1 + word.length > letters) lines.push("");
    lines[lines.length - 1] += (lines.at(-1) && " ") + word;
  }
  const shown = lines.slice(0, NOTE_LINES).map((line) => (line.length > letters ? `${line.slice(0, letters - 1)}…` : line));
  if (lines.length > NOTE_LINES && !shown.at(-1).endsWith("…")) shown[NOTE_LINES - 1] += "…";
  return shown.map(plotText).join("<br>");
}

/// What the panel is compared with, and what has no number, as absent_text of figure.h.
function noteOf(kind, panel) {
  const names = new Map();
  for (const { series, absent } of panel.series.filter((one) => one.absent)) names.set(absent, [...(names.get(absent) ?? []), kind.series[series].name]);
  const texts = [...names].map(([absent, list]) => `${list.join(", ")} ${absent}`);
  return [panel.note, texts.length > 0 && `no number: ${texts.join("; ")}`].filter(Boolean).join("; ");
}

const PANEL = { width: 266, height: 210, gapX: 44, gapY: 92, tick: 27, head: 46 };
const MARGIN = { l: 58, r: 10, t: 52, b: 46 };

function axisStyle(extra) {
  return { color: colorOf("--soft"), gridcolor: colorOf("--line"), zerolinecolor: colorOf("--line"), linecolor: colorOf("--line"), tickfont: { size: 11 }, ...extra };
}
const axisTitle = (text) => ({ title: { text, standoff: 6, font: { size: 11 } } });

function xAxis(figure, panel) {
  if (panel.ticks.length === 0) return { range: [figure.x_min, 1.02] };
  return { range: [-0.6, panel.ticks.length - 0.4], tickvals: panel.ticks.map((_, i) => i), ticktext: panel.ticks.map(plotText), showgrid: false, zeroline: false, tickangle: 0, tickfont: { size: panel.ticks.length > 8 ? 10 : 11 } };
}

/// The places of panels on a plot of this width.
function gridOf(panels, width) {
  const ticks = Math.max(...panels.map((panel) => panel.ticks.length));
  const inner = width - MARGIN.l - MARGIN.r;
  const columns = Math.max(1, Math.min(panels.length, 4, Math.floor((inner + PANEL.gapX) / (Math.max(PANEL.width, ticks * PANEL.tick) + PANEL.gapX))));
  const rows = Math.ceil(panels.length / columns);
  const height = rows * PANEL.height + (rows - 1) * PANEL.gapY;
  return { inner, columns, height, w: (inner - (columns - 1) * PANEL.gapX) / columns, h: PANEL.height };
}

const heightOf = (panels, width) => gridOf(panels, width).height + MARGIN.t + MARGIN.b;

function figureLayout(kind, figure, panels, width) {
  const { inner, columns, height, w, h } = gridOf(panels, width);
  const layout = {
    width, height: heightOf(panels, width), margin: MARGIN, barmode: "overlay", annotations: [], dragmode: "zoom",
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", font: { family: FONT, size: 12, color: colorOf("--ink") },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: colorOf("--soft"), activecolor: colorOf("--accent") },
    hoverlabel: { align: "left", bgcolor: colorOf("--card"), bordercolor: colorOf("--line"), font: { family: FONT, color: colorOf("--ink") } },
  };
  panels.forEach((panel, i) => {
    const axis = i === 0 ? "" : String(i + 1);
    const [x, y] = [((i % columns) * (w + PANEL.gapX)) / inner, 1 - (Math.floor(i / columns) * (h + PANEL.gapY)) / height];
    const isLowest = i >= panels.length - columns;
    layout[`xaxis${axis}`] = axisStyle({ anchor: `y${axis}`, domain: [x, Math.min(1, x + w / inner)], ...xAxis(figure, panel), ...(isLowest && figure.x && axisTitle(figure.x)) });
    layout[`yaxis${axis}`] = axisStyle({ anchor: `x${axis}`, domain: [Math.max(0, y - h / height), y], nticks: 6, rangemode: "tozero", ...(figure.y_max && { range: [0, figure.y_max] }), ...(figure.is_error && { tickformat: ".1e" }), ...(figure.shares_y && i > 0 && { matches: "y" }), ...(i % columns === 0 && axisTitle(figure.y)) });
    const note = noteOf(kind, panel);
    const lines = note && `<br><span style="font-size:10px">${wrapNote(note, Math.floor(w / NOTE_LETTER))}</span>`;
    layout.annotations.push({ text: `<b>${plotText(panel.title)}</b>${lines}`, hovertext: plotText(note), align: "left", xref: "paper", yref: "paper", x, y, xanchor: "left", yanchor: "top", yshift: PANEL.head, showarrow: false, font: { size: 12 } });
  });
  return layout;
}

/// A figure's buttons, shown under a pointer only, as they cover notes; `name` is that of the file
/// that a picture is saved to.
const plotConfig = (name) => ({ displaylogo: false, displayModeBar: window.innerWidth > 640 && matchMedia("(hover: hover)").matches && "hover", modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"], toImageButtonOptions: { format: "svg", filename: `longca-${name}` } });

function drawFigure(kind, figure, panels, series, place) {
  const traces = panels.flatMap((panel, i) => panelTraces(figure, panel, series, i === 0 ? "" : String(i + 1)));
  Plotly.react(place, traces, figureLayout(kind, figure, panels, place.clientWidth), plotConfig(figure.name));
  place.removeAllListeners("plotly_click");
  place.on("plotly_click", ({ points: [point] }) => point.customdata !== undefined && openCell(cells[point.customdata]));
}

/// Shows a figure's legend at once, and the plot when it comes near the screen; until then its place is
/// as high as it will be, so that what stands below does not move.
function prepareFigure(kind, figure, card, width) {
  const panels = figure.panels.map((panel) => narrowPanel(kind, panel)).filter(Boolean);
  const series = seriesOf(kind, panels);
  const place = card.querySelector(".plot");
  // A figure of cells that all failed is there for its notes.
  const hasNumbers = figure.panels.some((panel) => panel.series.some(hasNumber));
  card.hidden = panels.length === 0 || (hasNumbers && series.length === 0);
  observer.unobserve(card);
  pending.delete(card);
  if (card.hidden) return window.Plotly?.purge(place);
  card.querySelector(".legend").replaceChildren(...legendOf(kind, figure, series, panels));
  place.style.minHeight = `${heightOf(panels, width)}px`;
  pending.set(card, () => drawFigure(kind, figure, panels, series, place));
  observer.observe(card);
}

// Figures are drawn when they come near the screen.
const pending = new Map();
const observer = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) if (isIntersecting) whenPlotlyRuns.then(() => drawPending(target));
}, { rootMargin: "600px" });

function drawPending(card) {
  pending.get(card)?.();
  pending.delete(card);
  observer.unobserve(card);
}
const drawAllPending = () => [...pending.keys()].forEach(drawPending);

function makeFigureCards(kind) {
  const list = document.querySelector(`#plots-${kind.kind} .figures`);
  kind.figures.forEach((figure) => {
    const card = element("figure", { id: `figure-${figure.name}` }, element("figcaption", { textContent: figure.title }), element("p", { className: "hint", textContent: figure.hint }), element("div", { className: "legend" }), element("div", { className: "plot", id: `plot-${figure.name}` }));
    list.append(card);
  });
}

function drawFigures(kind) {
  const section = document.getElementById(`plots-${kind.kind}`);
  section.hidden = !hasPlots;
  if (!hasPlots) return;
  section.querySelector(".choices").replaceChildren(...kind.axes.filter((axis) => !isOfProblems(kind, axis)).map((axis) => chooser(kind, axis)));
  const width = section.querySelector(".figures").clientWidth;
  for (const figure of kind.figures) prepareFigure(kind, figure, document.getElementById(`figure-${figure.name}`), width);
}
