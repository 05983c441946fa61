// Draws everything anew whenever a choice or a filter changes.

function update() {
  writeAddress();
  showFilters();
  showPictures();
  for (const kind of data.kinds) {
    drawFastest(kind);
    drawFigures(kind);
    tables.get(kind.kind).draw();
  }
  drawTraceSection();
}

function redrawWhenResized() {
  let width = window.innerWidth;
  let timer = 0;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(timer);
    timer = setTimeout(update, 120);
  });
}

readAddress();
if (hasPlots) for (const kind of data.kinds) makeFigureCards(kind);
makeFilters();
redrawWhenResized();
darkScheme.addEventListener("change", update);
window.addEventListener("hashchange", () => { readAddress(); update(); });
window.addEventListener("beforeprint", () => window.Plotly && drawAllPending());
update();
// The first figure is there before the reader scrolls to it.
setTimeout(() => hasPlots && whenPlotlyRuns.then(() => pending.size > 0 && drawPending(pending.keys().next().value)));
if (state.cell) openCell(state.cell);
