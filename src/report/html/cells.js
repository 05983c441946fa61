// The table of a kind's cells, a page of rows at a time; a cell opens to its samples and command.

const ROWS = 100; // of a page of the table

const metric = (title, name, text = figureText) => ({ title, number: true, value: (cell) => cell.metrics[name], text: (cell) => text(cell.metrics[name]) });
const field = (title, name = title) => ({ title, value: (cell) => cell[name] });
const fixed = (digits) => (value) => value?.toFixed(digits) ?? "";

/// "= 1.5 MiB" if the bytes sent equal the formula to the byte, else both to the byte.
function formulaText({ metrics: { bytes_sent: sent, bytes_formula: formula } }) {
  if (formula === undefined || sent === undefined) return "";
  return sent === formula ? `= ${bytesText(formula)}` : `≠ ${formula} (sent ${sent})`;
}

// `value` is what sorting compares (unless `order` is given), `text` what is shown (default: the
// value). Columns without any value are left out.
function columnsOf(kind) {
  const maskOrder = kind.problems.map((problem) => problem.mask);
  const axes = [...new Set(cellsOf(kind).flatMap((cell) => Object.keys(cell.setting)))];
  const columns = [
    field("scheme", "row"), field("shard"), field("kernel"),
    { ...field("mask"), order: (cell) => maskOrder.indexOf(cell.mask) },
    { ...field("tokens"), number: true, text: (cell) => tokensText(cell.tokens) },
    { ...field("ranks"), number: true },
    ...axes.map((axis) => ({ title: axis, value: (cell) => cell.setting[axis] })),
    field("pass"),
    { ...metric(kind.unit, "rate"), isRate: true },
    metric("efficiency", "efficiency", fixed(2)),
    { ...metric("ms", "time_ms"), text: (cell) => figureText(cell.metrics.time_ms) + (cell.stop === "time_limit" ? " ~" : "") },
    { ...metric("± %", "time_ci_pct"), text: (cell) => (cell.metrics.time_ci_pct === undefined && cell.metrics.time_ms !== undefined ? "none" : fixed(2)(cell.metrics.time_ci_pct)) },
    { ...metric("draws", "draws", fixed(0)) }, { ...metric("spread %", "draws_spread_pct", fixed(2)) },
    field("dense kernel", "dense"), metric("÷ dense", "of_dense"), field("break-even", "break_even"),
    metric("selection ms", "selection_ms"), metric("total ms", "end_to_end_ms"), metric("total ÷ dense", "total_of_dense"),
    field("break-even of total", "break_even_total"), metric("selection of total", "selection_pct", percentText),
    metric("kept mass", "kept_mass", fixed(3)), metric("error of full", "error_full"),
    metric("exposed ms", "exposed_comm_ms"), metric("exposed %", "exposed_pct", percentText),
    metric("sent", "bytes_sent", bytesText), { ...metric("formula", "bytes_formula"), text: formulaText }, metric("lower bound", "bytes_least", bytesText),
    metric("imbalance", "imbalance", fixed(3)), metric("of time", "time_imbalance", fixed(3)),
    metric("error", "error", errorText), metric("LSE error", "error_lse", errorText),
    metric("memory", "peak_bytes", bytesText), metric("÷ dense's", "memory_of_dense", fixed(2)), metric("plan ms", "plan_ms"),
    field("status"), field("notes", "reason"),
  ];
  return columns.filter((column) => cellsOf(kind).some((cell) => column.value(cell) !== undefined && column.value(cell) !== ""));
}

// Cells without the value come last in either direction.
function compareCells({ order, value }, descending) {
  const key = order ?? value;
  return (a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
    return (x < y ? -1 : x > y ? 1 : 0) * (descending ? -1 : 1);
  };
}

/// The samples as points in the order of the run, from zero.
function samplesPlot(samples) {
  const top = Math.max(...samples) * 1.1;
  const points = samples.map((ms, i) => `<circle cx="${4 + (292 * (i + 0.5)) / samples.length}" cy="${58 - (54 * ms) / top}" r="2"/>`);
  const place = element("div");
  place.innerHTML = `<svg class="samples" viewBox="0 0 300 60">${points.join("")}</svg>`; // numbers only
  return place;
}

function samplesPart(cell) {
  if (cell.samples.length === 0) return [];
  const of = cell.samples.length < cell.samples_of ? ` of ${cell.samples_of}` : "";
  const list = element("p", { className: "mono", textContent: `${cell.samples.map(figureText).join(" ")} ms` });
  return [element("h4", { textContent: `${cell.samples.length}${of} samples, in order` }), samplesPlot(cell.samples), list];
}

/// The row that opens below a cell: command, samples, all figures, where it ran.
function detailsRow(cell, span) {
  const metrics = Object.entries(cell.metrics).map(([name, value]) => `${name} ${value}`).join(" · ");
  const parts = [
    element("h4", { textContent: "To repeat it" }), element("code", { className: "command", textContent: cell.command + cell.command_problem }),
    ...samplesPart(cell),
    ...(cell.rankTimes.length > 0 ? [element("h4", { textContent: "Median of each rank" }), element("p", { className: "mono", textContent: `${cell.rankTimes.map(figureText).join(" ")} ms` })] : []),
    ...(cell.reason ? [element("h4", { textContent: "Notes" }), element("p", { textContent: cell.reason })] : []),
    ...(metrics ? [element("h4", { textContent: "All figures" }), element("p", { className: "mono", textContent: metrics })] : []),
    element("h4", { textContent: "Where it ran" }), element("p", { textContent: cell.origin }),
  ];
  return element("tr", { className: "details" }, element("td", { colSpan: span }, element("div", {}, ...parts)));
}

class CellTable {
  constructor(kind) {
    this.kind = kind;
    this.section = document.getElementById(`cells-${kind.kind}`);
    this.section.hidden = false;
    this.columns = columnsOf(kind);
    this.fastest = new Set(kind.problems.flatMap((problem) => ["forward", "backward", "step"].flatMap((work) => problem[work]?.tied.map(([, cell]) => cell).filter((cell) => cells[cell].pass === work) ?? [])));
    this.sort = { column: null, descending: false };
    this.first = 0;
    this.everySetting = this.section.querySelector("input");
    this.everySetting.closest("label").hidden = !kind.axes.some((axis) => isOfProblems(kind, axis));
    this.everySetting.addEventListener("change", () => { this.first = 0; this.draw(); });
  }

  sortBy(column) {
    const isSame = this.sort.column === column;
    this.sort = { column, descending: isSame ? !this.sort.descending : Boolean(column.number) };
    this.first = 0;
    this.draw();
  }

  title(column) {
    const button = element("button", { type: "button", textContent: column.title });
    button.addEventListener("click", () => this.sortBy(column));
    const title = element("th", { scope: "col", className: column.number ? "number" : "" }, button);
    if (this.sort.column === column) title.setAttribute("aria-sort", this.sort.descending ? "descending" : "ascending");
    return title;
  }

  row(cell) {
    const row = element("tr", { id: `cell-${cell.id}`, tabIndex: 0 });
    for (const column of this.columns) {
      const text = column.text ? column.text(cell) : column.value(cell) ?? "";
      const place = element("td", { textContent: text, className: column.number ? "number" : "" });
      if (column.title === "status") place.className = `status-${cell.status}`;
      if (column.title === "notes") Object.assign(place, { className: "notes", title: text });
      if (column.isRate && this.fastest.has(cell.id)) place.classList.add("best");
      row.append(place);
    }
    const toggle = () => (state.cell === cell ? closeCell() : openCell(cell, false));
    row.addEventListener("click", toggle);
    row.addEventListener("keydown", ({ key }) => key === "Enter" && toggle());
    return row;
  }

  shown() {
    const shown = cellsOf(this.kind).filter((cell) => passesFilters(cell) && (this.everySetting.checked || isChosen(cell)));
    return this.sort.column ? shown.sort(compareCells(this.sort.column, this.sort.descending)) : shown;
  }

  /// Turns to the page that has the cell.
  turnTo(cell) {
    const place = this.shown().indexOf(cell);
    if (place >= 0) this.first = Math.floor(place / ROWS) * ROWS;
  }

  pager(count) {
    const turn = (text, first) => {
      const button = element("button", { type: "button", className: "link", textContent: text, disabled: first < 0 || first >= count });
      button.addEventListener("click", () => { this.first = first; this.draw(); });
      return button;
    };
    if (count <= ROWS) return [];
    return [turn("‹ before", this.first - ROWS), `${this.first + 1}–${Math.min(this.first + ROWS, count)} of ${count}`, turn("after ›", this.first + ROWS)];
  }

  draw() {
    const shown = this.shown();
    if (this.first >= shown.length) this.first = 0;
    const rows = shown.slice(this.first, this.first + ROWS).flatMap((cell) => (cell === state.cell ? [this.row(cell), detailsRow(cell, this.columns.length)] : [this.row(cell)]));
    this.section.querySelector("thead").replaceChildren(element("tr", {}, ...this.columns.map((column) => this.title(column))));
    this.section.querySelector("tbody").replaceChildren(...rows);
    const all = cellsOf(this.kind).length;
    this.section.querySelector(".count").textContent = shown.length === all ? `${all}` : `${shown.length} of ${all}`;
    for (const place of this.section.querySelectorAll(".pager")) place.replaceChildren(...this.pager(shown.length));
  }
}

const tables = new Map(data.kinds.map((kind) => [kind.kind, new CellTable(kind)]));

/// Opens the cell's details in its table; `scrolls` brings them on the screen.
function openCell(cell, scrolls = true) {
  state.cell = cell;
  const table = tables.get(cell.kind);
  if (!passesFilters(cell) || !isChosen(cell)) table.everySetting.checked = true;
  if (scrolls) table.turnTo(cell);
  table.draw();
  writeAddress();
  if (scrolls) document.getElementById(`cell-${cell.id}`)?.scrollIntoView({ block: "center" });
}

/// Shows the cells of one status, of every setting: from "20 wrong" to which and why.
function showStatus(status) {
  const dimension = dimensions.find(({ name }) => name === "status");
  state.hidden.status = new Set(dimension?.values.filter((value) => value !== status));
  for (const table of tables.values()) table.everySetting.checked = true;
  update();
  const kind = cells.find((cell) => cell.status === status).kind;
  document.getElementById(`cells-${kind}`).scrollIntoView();
}
for (const tile of document.querySelectorAll(".tiles button")) tile.addEventListener("click", () => showStatus(tile.dataset.status));

function closeCell() {
  const table = tables.get(state.cell.kind);
  state.cell = undefined;
  table.draw();
  writeAddress();
}
