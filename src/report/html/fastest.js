// The first screen: what is fastest for each mask and length. The ranking is the program's
// (report/data/ranking.h); nothing is compared here.

const WORKS = ["forward", "backward", "step"];

function chooser(kind, axis) {
  const select = element("select", {}, ...axis.values.map((value) => element("option", { value, textContent: value, selected: value === state.choice[kind.kind][axis.name] })));
  select.dataset.axis = axis.name;
  select.addEventListener("change", () => {
    state.choice[kind.kind][axis.name] = select.value;
    update();
  });
  return element("label", {}, `${axis.name} `, select);
}

/// An axis of problems is chosen above them all; one that only figures have, above these.
const isOfProblems = (kind, axis) => kind.problems.some((problem) => axis.name in problem.setting);

const FEW_COLUMNS = 4; // have room for rates and for the names of ties

/// "fa3 = cudnn", and how far behind the next is; where columns are many a dot stands for the tie.
function fastestLine(kind, work, ranking, hasRoom) {
  const line = element("div", { className: "fastest" });
  if (!ranking) return Object.assign(line, { title: `${work}: no number; the cells say why`, textContent: "–" });
  const name = (series) => kind.series[series].name;
  const { tied, lead, next } = ranking;
  const winner = ([series, cell], text) => {
    const button = element("button", { type: "button", className: "winner", title: name(series) }, dot(seriesColor(kind.series[series])), text);
    button.addEventListener("click", () => openCell(cells[cell]));
    return button;
  };
  const named = tied.slice(0, hasRoom ? 2 : 1);
  line.append(...tied.slice(named.length, 4).reverse().map((other) => winner(other, "")));
  named.forEach((one, i) => line.append(i > 0 ? " = " : "", winner(one, name(one[0]))));
  if (hasRoom) line.append(element("b", { className: "rate", textContent: figureText(tied[0][3]) }));
  const isAlone = !lead && tied.length === 1;
  line.append(element("span", { className: "lead", textContent: lead ? `${figureText(lead)}×` : isAlone ? "alone" : "" }));
  line.title = [
    `${work}: ` + tied.map(([series, , ms, rate]) => `${name(series)} ${figureText(ms)} ms, ${figureText(rate)} ${kind.unit}`).join(" = "),
    lead ? `${figureText(lead)} times as fast as ${name(next)}` : isAlone ? "nothing else has a number" : "all are equally fast",
  ].join("\n");
  return line;
}

/// Stands where no cell is; a click shows the command that measures it.
function unmeasuredButton(section, command) {
  const button = element("button", { type: "button", className: "unmeasured", title: command, textContent: "not measured" });
  button.addEventListener("click", () => {
    const place = section.querySelector(".to-measure");
    place.replaceChildren("To measure it: ", element("code", { className: "command", textContent: command }));
    place.hidden = false;
    place.scrollIntoView({ block: "nearest" });
  });
  return button;
}

function problemField(kind, problem, works, hasRoom, measureButton) {
  if (!problem) return element("td", {}, measureButton());
  return element("td", {}, ...works.map((work) => problem.unmeasured?.includes(work)
    ? element("div", { className: "fastest" }, measureButton())
    : fastestLine(kind, work, problem[work], hasRoom)));
}

/// A name that may break after each "_".
const breakable = (name) => name.split(/(?<=_)/).flatMap((part) => [part, element("wbr")]);

/// A copy of the mask's picture, at the setting shown if there is one of that.
function smallPicture(mask, choice) {
  const own = [...document.querySelectorAll("#masks-section .picture")].filter((picture) => picture.dataset.mask === mask);
  const picture = own.find((known) => agrees(JSON.parse(known.dataset.axes), choice)) ?? own[0];
  return picture ? [picture.querySelector("svg").cloneNode(true)] : [];
}

const isShownProblem = (problem) => !isHidden("mask", problem.mask) && !isHidden("tokens", problem.tokens) && !isHidden("ranks", problem.ranks);

function drawFastest(kind) {
  const section = document.getElementById(`fastest-${kind.kind}`);
  section.hidden = false;
  section.querySelector(".setting").textContent = kind.setting;
  section.querySelector(".choices").replaceChildren(...kind.axes.filter((axis) => isOfProblems(kind, axis)).map((axis) => chooser(kind, axis)));
  const choice = state.choice[kind.kind];
  const problems = kind.problems.filter((problem) => agrees(problem.setting, choice) && isShownProblem(problem));
  const columns = [...new Set(problems.map((problem) => problem.column))].sort((a, b) => a - b);
  const titleOf = ({ title, mask }) => title ?? mask;
  const commandOf = (title) => kind.rows.find((row) => row.title === title && agrees(row.setting, choice)).command;
  const field = (title, column) => problemField(
    kind, problems.find((problem) => titleOf(problem) === title && problem.column === column), works, columns.length <= FEW_COLUMNS,
    () => unmeasuredButton(section, commandOf(title) + kind.column_commands[column]));
  const titles = [...new Map(problems.map((problem) => [titleOf(problem), problem.mask]))];
  const works = WORKS.filter((work) => kind.problems.some((problem) => problem[work]));
  const head = columns.map((column) => element("th", { scope: "col", textContent: kind.columns[column] }));
  const rows = titles.map(([title, mask]) => element("tr", {},
    element("th", { scope: "row" }, ...smallPicture(mask, choice), element("span", {}, ...breakable(title))),
    element("td", { className: "works" }, ...works.map((work) => element("div", { textContent: work }))),
    ...columns.map((column) => field(title, column))));
  section.querySelector(".to-measure").hidden = true;
  const perRank = kind.kind === "ranks" ? " per rank" : "";
  section.querySelector(".unit").textContent = columns.length <= FEW_COLUMNS ? `Bold: ${kind.unit}${perRank}. ` : "";
  section.querySelector("table").replaceChildren(
    element("thead", {}, element("tr", {}, element("th", { scope: "col", textContent: "mask" }), element("th"), ...head)), element("tbody", {}, ...rows));
  section.querySelector(".nothing").hidden = problems.length > 0;
}
