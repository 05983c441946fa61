// The bar of filters: a chip per value of every dimension that has more than one.

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
  // On a small screen the bar would fill the page.
  if (window.innerWidth <= 640) document.querySelector("#filters details").open = false;
}

function showPictures() {
  for (const picture of document.querySelectorAll(".picture")) {
    picture.hidden = !state.shown.get("mask").has(picture.dataset.mask) || !state.shown.get("length").has(Number(picture.dataset.tokens));
  }
}
