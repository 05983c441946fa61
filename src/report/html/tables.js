// The table of the fastest kernels, and tables of cells that sort by any column.

const axisColumns = data.axes.map((axis) => ({ title: axis.name, value: (cell) => cell.setting[axis.name] }));

const closingColumns = [
  { title: "status", value: (cell) => cell.status },
  { title: "reason", value: (cell) => cell.reason, text: (cell) => [cell.reason, ...Object.entries(cell.notes).map(([name, note]) => `${name}: ${note}`)].filter(Boolean).join("; ") },
];

// `value` is what sorting compares (unless `order` is given), `text` what is shown (default: the value).
const columns = [
  { title: "kernel", value: (cell) => cell.kernel },
  { title: "mask", value: (cell) => cell.mask, order: (cell) => data.masks.indexOf(cell.mask) },
  { title: "tokens", number: true, value: (cell) => cell.tokens, text: (cell) => tokensText(cell.tokens) },
  ...axisColumns,
  { title: "pass", value: (cell) => cell.pass },
  { title: data.unit.name, number: true, isRate: true, value: rateOf, text: (cell) => figureText(rateOf(cell)) },
  { title: "ms", number: true, value: (cell) => cell.metrics.time_ms, text: (cell) => figureText(cell.metrics.time_ms) + (cell.stop === "time_limit" ? " ~" : "") },
  { title: "± %", number: true, value: (cell) => cell.metrics.time_ci_pct, text: (cell) => cell.metrics.time_ci_pct?.toFixed(2) ?? "" },
  { title: "error", number: true, value: largestError, text: (cell) => errorText(largestError(cell)) },
  { title: "LSE error", number: true, value: (cell) => cell.metrics.error_lse, text: (cell) => errorText(cell.metrics.error_lse) },
  { title: "memory", number: true, value: (cell) => cell.metrics.peak_bytes, text: (cell) => bytesText(cell.metrics.peak_bytes) },
  { title: "plan ms", number: true, value: (cell) => cell.metrics.plan_ms, text: (cell) => figureText(cell.metrics.plan_ms) },
  ...closingColumns,
];

// Cells without the value come last in either direction.
function compareCells(column, descending) {
  const key = column.order ?? column.value;
  return (a, b) => {
    const [x, y] = [key(a), key(b)];
    if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
    const order = x < y ? -1 : x > y ? 1 : 0;
    return descending ? -order : order;
  };
}

function cellRow(columns, cell) {
  const row = element("tr");
  for (const column of columns) {
    const text = column.text ? column.text(cell) : column.value(cell) ?? "";
    const field = element("td", { textContent: text, className: column.number ? "number" : "" });
    if (column.title === "status") field.className = `status-${cell.status}`;
    if (column.title === "reason") field.className = "reason";
    if (column.isRate && cell.best) field.classList.add("best");
    row.append(field);
  }
  return row;
}

/// A table of the shown cells of one kind. Returns {draw}.
function makeTable(id, countId, columns, isOwn) {
  const table = document.getElementById(id);
  let sort = { column: null, descending: false };
  const all = data.cells.filter(isOwn).length;

  function sortBy(column) {
    const isSame = sort.column === column;
    sort = { column, descending: isSame ? !sort.descending : Boolean(column.number) };
    draw();
  }

  function titleOf(column) {
    const button = element("button", { type: "button", textContent: column.title });
    button.addEventListener("click", () => sortBy(column));
    const title = element("th", { scope: "col", className: column.number ? "number" : "" }, button);
    if (sort.column === column) title.setAttribute("aria-sort", sort.descending ? "descending" : "ascending");
    return title;
  }

  function draw() {
    const cells = shownCells().filter(isOwn);
    if (sort.column) cells.sort(compareCells(sort.column, sort.descending));
    table.querySelector("thead").replaceChildren(element("tr", {}, ...columns.map(titleOf)));
    table.querySelector("tbody").replaceChildren(...cells.map((cell) => cellRow(columns, cell)));
    document.getElementById(countId).textContent = cells.length === all ? `${all}` : `${cells.length} of ${all}`;
  }
  return { draw };
}

const cellTable = makeTable("cells", "cell-count", columns, isSingle);

/// The fastest cell, and how far ahead of the next kernel it is.
function winnerField(cells, showsLead) {
  const ranked = cells.filter((cell) => rateOf(cell) !== undefined).sort((a, b) => rateOf(b) - rateOf(a));
  if (ranked.length === 0) return element("td", { textContent: "–" });
  const [best] = ranked;
  const next = ranked.find((cell) => cell.kernel !== best.kernel);
  const dot = element("i", { className: "dot" });
  dot.style.background = kernelColor(best.kernel);
  const lead = next ? `${figureText(rateOf(best) / rateOf(next))} × ${next.kernel}` : "";
  const field = element("td", { title: [settingText(best), lead].filter(Boolean).join(" · ") }, dot, best.kernel, element("b", { className: "rate", textContent: figureText(rateOf(best)) }));
  if (showsLead) field.append(element("span", { className: "lead", textContent: lead }));
  return field;
}

function drawWinners() {
  const cells = shownCells().filter(isSingle);
  const has = (key, value) => cells.some((cell) => cell[key] === value);
  const lengths = data.tokens.filter((tokens) => has("tokens", tokens));
  const passes = data.passes.filter((pass) => has("pass", pass));
  const showsLead = passes.length * lengths.length <= 3;
  const heads = passes.flatMap((pass) => lengths.map((tokens) => element("th", { scope: "col", textContent: `${tokensText(tokens)} ${pass}` })));
  const rows = data.masks.filter((mask) => has("mask", mask)).map((mask) => {
    const fields = passes.flatMap((pass) => lengths.map((tokens) => winnerField(cells.filter((cell) => cell.mask === mask && cell.tokens === tokens && cell.pass === pass), showsLead)));
    return element("tr", {}, element("td", { textContent: mask }), ...fields);
  });
  document.getElementById("winners").replaceChildren(
    element("thead", {}, element("tr", {}, element("th", { scope: "col", textContent: "mask" }), ...heads)),
    element("tbody", {}, ...rows));
  const lead = showsLead ? ", with its lead over the next kernel" : "";
  document.getElementById("winners-hint").textContent = `Of the cells shown, per mask and length, in ${data.unit.name}${lead}.`;
}
