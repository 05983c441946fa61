// Ties the parts together: a change of the filters redraws everything that shows cells.

function update() {
  drawWinners();
  drawPlots();
  drawTrace();
  drawSparsePlots();
  drawRankPlots();
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
// A run over ranks alone has nothing to say of kernels on one device.
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
