// The filters: a chip per value of every dimension of cells with several values.

function makeChip(dimension, value) {
  const box = element("input", { type: "checkbox", name: dimension.name, value: String(value) });
  box.addEventListener("change", () => {
    const hidden = state.hidden[dimension.name];
    if (box.checked) hidden.delete(value);
    else hidden.add(value);
    update();
  });
  return element("label", { className: "chip" }, box, element("span", { textContent: dimension.text(value) }));
}

function makeFilterGroup(dimension) {
  const setAll = (text, hidden) => {
    const button = element("button", { type: "button", className: "link", textContent: text });
    button.addEventListener("click", () => {
      state.hidden[dimension.name] = new Set(hidden);
      update();
    });
    return button;
  };
  const chips = element("div", { className: "chips" }, ...dimension.values.map((value) => makeChip(dimension, value)), setAll("all", []), setAll("none", dimension.values));
  const group = element("div", { className: "filter-group" }, element("span", { className: "filter-name", textContent: dimension.name }), chips);
  group.dataset.dimension = dimension.name;
  return group;
}

function makeFilters() {
  document.getElementById("filter-groups").append(...dimensions.map(makeFilterGroup));
  document.getElementById("filters").hidden = dimensions.length === 0;
}

/// Shows what is filtered on the chips, and in the summary how much.
function showFilters() {
  for (const dimension of dimensions) {
    const boxes = document.querySelectorAll(`.filter-group[data-dimension="${dimension.name}"] input`);
    dimension.values.forEach((value, i) => { boxes[i].checked = !isHidden(dimension.name, value); });
  }
  const active = dimensions.filter(({ name }) => state.hidden[name].size > 0).map(({ name }) => name);
  document.getElementById("filter-summary").textContent = active.length > 0 ? `Filters: ${active.join(", ")}` : "Filters: all cells of the settings chosen above";
}

/// Shows the pictures of the masks that the filters show.
function showPictures() {
  for (const picture of document.querySelectorAll("#masks-section .picture")) picture.hidden = isHidden("mask", picture.dataset.mask);
}
