// The filters, a chip per value of every dimension with several values; a change redraws everything
// that shows cells.

function makeChip(dimension, value, update) {
  const box = element("input", { type: "checkbox", checked: true, name: dimension.name, value: String(value) });
  const label = element("span");
  const color = { kernel: kernelColor, scheme: schemeColor }[dimension.name];
  if (color && !(dimension.name === "kernel" && !data.cells.some(isSingle))) {
    const dot = element("i", { className: "dot" });
    dot.style.background = color(value);
    label.append(dot);
  }
  label.append(dimension.text(value));
  box.addEventListener("change", () => {
    const shown = state.shown.get(dimension.name);
    if (box.checked) shown.add(value);
    else shown.delete(value);
    update();
  });
  return element("label", { className: "chip" }, box, label);
}

function makeFilterGroup(dimension, update) {
  const chips = element("div", { className: "chips" }, ...dimension.values.map((value) => makeChip(dimension, value, update)));
  const setAll = (checked) => {
    state.shown.set(dimension.name, new Set(checked ? dimension.values : []));
    for (const box of chips.querySelectorAll("input")) box.checked = checked;
    update();
  };
  const all = element("button", { type: "button", className: "link", textContent: "all" });
  const none = element("button", { type: "button", className: "link", textContent: "none" });
  all.addEventListener("click", () => setAll(true));
  none.addEventListener("click", () => setAll(false));
  chips.append(all, none);
  const group = element("div", { className: "filter-group" }, element("span", { className: "filter-name", textContent: dimension.name }), chips);
  group.dataset.dimension = dimension.name;
  return group;
}

function makeFilters(update) {
  const useful = dimensions.filter((dimension) => dimension.values.length > 1);
  document.getElementById("filter-groups").append(...useful.map((dimension) => makeFilterGroup(dimension, update)));
  document.getElementById("filters").hidden = useful.length === 0;
  // On a small screen the open filters would fill the page.
  if (window.innerWidth <= 640) document.querySelector("#filters details").open = false;
}

/// Shows the pictures of the masks and lengths that the filters show.
function showPictures() {
  for (const picture of document.querySelectorAll(".picture")) {
    picture.hidden = !state.shown.get("mask").has(picture.dataset.mask) || !state.shown.get("length").has(Number(picture.dataset.tokens));
  }
}

function update() {
  drawWinners();
  drawAllPlots();
  showPictures();
  cellTable.draw();
  sparseCells.draw();
  rankTable.draw();
}

function drawAllPlots() {
  drawPlots();
  drawTrace();
  drawSparsePlots();
  drawRankPlots();
}

function redrawWhenResized() {
  let width = window.innerWidth;
  let timer = 0;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(timer);
    timer = setTimeout(drawAllPlots, 120);
  });
}

if (typeof Plotly === "undefined") document.body.classList.add("no-plots");
// Hides the sections of kernels on one device if there are only cells over ranks.
for (const id of ["winners-section", "plots-section", "cells-section"]) document.getElementById(id).hidden = Boolean(data.ranks) && !data.cells.some(isSingle);
document.getElementById("panels").value = new Set(data.cells.filter(isSingle).map((cell) => cell.tokens)).size > 2 ? "mask" : "length";
document.getElementById("panels").addEventListener("change", drawPlots);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAllPlots);
showSparse();
showRanks();
makeFilters(update);
explainMarks();
redrawWhenResized();
update();
