// What the reader has chosen (state), kept in the address: a link or a reload shows the same.

const CELL_DIMENSIONS = ["kernel", "mask", "tokens", "pass", "scheme", "ranks", "shard", "factor", "transport", "status"];

/// Its values in the order of display.
function dimensionOf(name) {
  const values = [...new Set(cells.map((cell) => cell[name]))].filter((value) => value !== undefined);
  if (typeof values[0] === "number") values.sort((a, b) => a - b);
  return { name, values, text: name === "tokens" ? tokensText : String };
}
const dimensions = CELL_DIMENSIONS.map(dimensionOf).filter((dimension) => dimension.values.length > 1);

const state = {
  choice: {},            // by kind: the value of each axis, one at a time
  hidden: {},            // by dimension: the values that filters hide
  on: {}, off: {},       // by kind: series that the reader switched on (last first) or off
  cell: undefined,       // the cell whose details are open
};

function resetState() {
  for (const kind of data.kinds) {
    state.choice[kind.kind] = Object.fromEntries(kind.axes.map((axis) => [axis.name, axis.chosen]));
    state.on[kind.kind] = [];
    state.off[kind.kind] = new Set();
  }
  for (const dimension of dimensions) state.hidden[dimension.name] = new Set();
  state.cell = undefined;
}

function readAddress() {
  resetState();
  for (const [key, value] of new URLSearchParams(location.hash.slice(1))) {
    const [what, name, axis] = key.split(".");
    const kind = data.kinds.find((known) => known.kind === name);
    if (what === "at" && kind?.axes.find((known) => known.name === axis)?.values.includes(value)) state.choice[name][axis] = value;
    if (what === "on" && kind) state.on[name].push(value);
    if (what === "off" && kind) state.off[name].add(value);
    if (what === "cell" && cells[value]) state.cell = cells[value];
    const hidden = dimensions.find((known) => known.name === name)?.values.find((known) => String(known) === value);
    if (what === "hide" && hidden !== undefined) state.hidden[name].add(hidden);
  }
}

function writeAddress() {
  const address = new URLSearchParams();
  for (const kind of data.kinds) {
    for (const axis of kind.axes) {
      if (state.choice[kind.kind][axis.name] !== axis.chosen) address.append(`at.${kind.kind}.${axis.name}`, state.choice[kind.kind][axis.name]);
    }
    for (const name of state.on[kind.kind]) address.append(`on.${kind.kind}`, name);
    for (const name of state.off[kind.kind]) address.append(`off.${kind.kind}`, name);
  }
  for (const [name, values] of Object.entries(state.hidden)) {
    for (const value of values) address.append(`hide.${name}`, value);
  }
  if (state.cell) address.set("cell", state.cell.id);
  history.replaceState(null, "", address.size ? `#${address}` : "#");
}

const isHidden = (name, value) => value !== undefined && (state.hidden[name]?.has(value) ?? false);
/// Whether no filter hides the cell. A filter does not apply to cells without a value on its axis.
const passesFilters = (cell) => dimensions.every(({ name }) => !isHidden(name, cell[name]));
const isChosen = (cell) => agrees(cell.setting, state.choice[cell.kind]);
