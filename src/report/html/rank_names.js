// Names and looks of the lines and bars of schemes, and the note on those without a number.

const schemeColor = (scheme) => PALETTE[data.ranks.schemes.indexOf(scheme) % PALETTE.length];

const DASHES = ["solid", "dash", "dot", "dashdot", "longdash"];
const SYMBOLS = ["circle", "diamond", "square", "triangle-up", "x"];

/// What follows the scheme in the names of lines: the kernel if several are shown, the axes that
/// differ at equal work and ranks, and the setting. A factor that only follows the number of ranks is
/// left out. If one scheme of a kernel has several transports, every line of the kernel names its own.
function variantNames(cells) {
  const axisKey = (cell, axis) => JSON.stringify([axis, cell.kernel, axis === "transport" ? "" : cell.scheme]);
  const firstOfWork = new Map();
  const differing = new Set();
  for (const cell of cells) {
    const work = JSON.stringify([cell.scheme, cell.kernel, cell.mask, cell.tokens, cell.ranks, cell.pass, cell.setting]);
    if (!firstOfWork.has(work)) firstOfWork.set(work, cell);
    for (const axis of ["shard", "factor", "transport"]) {
      if (cell[axis] !== firstOfWork.get(work)[axis]) differing.add(axisKey(cell, axis));
    }
  }
  const showsKernel = new Set(cells.map((cell) => cell.kernel)).size > 1;
  const valueOf = (cell, axis) => (cell[axis] === undefined ? `no ${axis}` : axis === "factor" ? `factor ${cell.factor}` : cell[axis]);
  return (cell) => {
    const axes = ["shard", "factor", "transport"].filter((axis) => differing.has(axisKey(cell, axis)));
    return [showsKernel ? cell.kernel : "", axes.map((axis) => valueOf(cell, axis)).join(", "), settingText(cell)].filter(Boolean).join(" · ");
  };
}

/// Assigns colours to schemes and looks (dashes or patterns, by index) to variants. A legend lists the
/// series one by one, or, if that takes fewer entries, schemes and variants separately (isSplit); then
/// a variant has the same look with every scheme.
function rankNames(cells) {
  const variantOf = variantNames(cells);
  const withNumber = cells.filter((cell) => rateOf(cell) !== undefined);
  const distinct = (list, of) => [...new Set(list.map(of))];
  const variants = distinct(withNumber, variantOf);
  const series = distinct(withNumber, (cell) => JSON.stringify([cell.scheme, variantOf(cell)]));
  const isSplit = distinct(withNumber, (cell) => cell.scheme).length + variants.length < series.length;
  const variantsOf = new Map(data.ranks.schemes.map((scheme) => [scheme, distinct(withNumber.filter((cell) => cell.scheme === scheme), variantOf)]));
  return { variantOf, isSplit, lookOf: (scheme, variant) => Math.max(0, (isSplit ? variants : variantsOf.get(scheme)).indexOf(variant)) };
}

const lookStyle = (look) => ({ dash: DASHES[look % DASHES.length], symbol: SYMBOLS[look % SYMBOLS.length], pattern: PATTERNS[look % PATTERNS.length] });

/// One series per scheme and variant.
function rankSeries(cells, names) {
  return data.ranks.schemes.flatMap((scheme) => {
    const all = cells.filter((cell) => cell.scheme === scheme);
    return [...new Set(all.map(names.variantOf))].map((variant) => {
      const name = variant ? `${scheme} · ${variant}` : scheme;
      const look = names.lookOf(scheme, variant);
      return {
        scheme, variant, name, look, ...lookStyle(look), color: schemeColor(scheme), group: names.isSplit ? scheme : name,
        cells: all.filter((cell) => names.variantOf(cell) === variant).sort((a, b) => a.ranks - b.ranks),
      };
    });
  });
}

/// The entries of a split legend, traces without points: schemes in their colours, variants in grey.
function legendTraces(series, ranks, hasBars) {
  const firstOf = (name) => [...new Map(series.map((one) => [one[name], one]).reverse()).values()].reverse();
  const entry = (name, group, color, style) => ({
    name: plotText(name || "others"), legendgroup: group, x: [ranks[0]], y: [null], hoverinfo: "skip",
    ...(hasBars
      ? { type: "bar", offsetgroup: series[0].name, marker: { color, pattern: { shape: style.pattern, fillmode: "overlay", size: 5, solidity: 0.3 } } }
      : { type: "scatter", mode: "lines+markers", line: { color, dash: style.dash, width: 1.8 }, marker: { color, symbol: style.symbol, size: 7 } }),
  });
  const variants = firstOf("variant").sort((a, b) => a.look - b.look);
  return [
    ...firstOf("scheme").map((one) => entry(one.scheme, one.scheme, one.color, lookStyle(0))),
    ...variants.map((one) => entry(one.variant, VARIANT_GROUP + one.variant, colorOf("--soft"), one)),
  ];
}
const VARIANT_GROUP = "variant ";

/// Lists the cells of a panel without a rate: "no number: ulysses 8 X, 16 X; usp 16 C". Schemes that
/// lack the same are listed together: "no number: naive X (all 6 schemes)".
function absentText(cells, names, hasOneCount) {
  const series = rankSeries(cells, names);
  const gaps = new Map();
  for (const one of series) {
    const absent = one.cells.filter((cell) => rateOf(cell) === undefined).map((cell) => (hasOneCount ? "" : `${cell.ranks} `) + markOf(cell.status));
    const key = JSON.stringify([one.variant, absent]);
    if (absent.length > 0) gaps.set(key, [...(gaps.get(key) ?? []), one.scheme]);
  }
  const texts = [...gaps].map(([key, schemes]) => {
    const [variant, absent] = JSON.parse(key);
    const isAll = schemes.length > 2 && schemes.length === series.filter((one) => one.variant === variant).length;
    const who = isAll ? `all ${schemes.length} schemes` : schemes.join(", ");
    return variant ? `${variant} ${absent.join(", ")} (${who})` : `${who} ${absent.join(", ")}`;
  });
  return texts.length > 0 ? `no number: ${texts.join("; ")}` : "";
}

/// Breaks a text into at most `maxLines` lines; the last ends in "…" if the text is cut.
function wrapText(text, letters, maxLines) {
  const lines = [""];
  for (const word of text.split(" ")) {
    if (lines.at(-1) && lines.at(-1).length + 1 + word.length > letters) lines.push("");
    lines[lines.length - 1] += (lines.at(-1) && " ") + word;
  }
  const shown = lines.slice(0, maxLines).map((line) => (line.length > letters ? `${line.slice(0, letters - 1)}…` : line));
  if (lines.length > maxLines && !shown.at(-1).endsWith("…")) shown[maxLines - 1] += "…";
  return shown;
}

const NOTE_LINES = 2;
const NOTE_LETTER = 5.4; // pixels
const NOTE_LINE = 13;
