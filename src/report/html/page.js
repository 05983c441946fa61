// Ties the parts together: a change of the filters redraws everything that shows cells.

function update() {
  drawWinners();
  drawPlots();
  drawTrace();
  showPictures();
  drawCells();
}

function drawAllPlots() {
  drawPlots();
  drawTrace();
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
document.getElementById("panels").value = data.tokens.length > 2 ? "mask" : "length";
document.getElementById("panels").addEventListener("change", drawPlots);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAllPlots);
makeFilters(update);
explainMarks();
redrawWhenResized();
update();
