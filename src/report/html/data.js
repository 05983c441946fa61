"use strict";
// The records (data), each cell as an object, and the texts of figures.

const data = JSON.parse(document.getElementById("data").textContent);

/// Decodes the columns of html_cells.h: an object per cell, without what it does not have.
function decodeCells({ count, columns, metrics, samples, rank_times, traces }) {
  const times = ([first, ...parts]) => parts.map((part) => first * (1 + part / 1e4));
  const cells = Array.from({ length: count }, (_, id) => {
    const [set, ...numbers] = metrics.rows[id];
    return { id, metrics: Object.fromEntries(metrics.sets[set].map((name, i) => [name, numbers[i]])), samples: times(samples[id]), rankTimes: [] };
  });
  for (const [name, { values, runs }] of Object.entries(columns)) {
    for (let run = 0, id = 0; run < runs.length; run += 2) {
      for (const end = id + runs[run + 1]; id < end; ++id) cells[id][name] = values[runs[run]] ?? undefined;
    }
  }
  for (const [id, list] of rank_times) cells[id].rankTimes = times(list);
  traces.forEach(([id, t_ms, sm_clock_mhz, power_w], order) => Object.assign(cells[id], { order, trace: { t_ms, sm_clock_mhz, power_w } }));
  return cells;
}

const cells = decodeCells(data.cells);
const cellsOf = (kind) => cells.filter((cell) => cell.kind === kind.kind);

/// "8K" = 8192. These texts are those of format.h.
function tokensText(tokens) {
  if (tokens >= 1 << 20 && tokens % (1 << 20) === 0) return `${tokens / (1 << 20)}M`;
  if (tokens >= 1024 && tokens % 1024 === 0) return `${tokens / 1024}K`;
  return String(tokens);
}

function figureText(value) {
  if (value === undefined || value === null) return "";
  const size = Math.abs(value);
  if (size >= 999.95) return value.toFixed(0);
  if (size >= 9.995) return value.toFixed(1);
  if (size >= 0.9995 || size === 0) return value.toFixed(2);
  return value.toFixed(size < 1e-6 ? 9 : 2 - Math.floor(Math.log10(size / 0.9995)));
}

function bytesText(bytes) {
  if (bytes === undefined) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.length; ++unit) bytes /= 1024;
  return `${bytes.toFixed(unit === 0 || bytes >= 100 ? 0 : 1)} ${units[unit]}`;
}

const errorText = (error) => (error === undefined ? "" : error.toExponential(1));
const percentText = (percent) => (percent === undefined ? "" : `${percent.toFixed(1)} %`);
const markOf = (status) => data.marks.find((known) => known.status === status)?.mark ?? "";

/// "dtype float32 · heads 8:2".
const settingText = (setting) => Object.entries(setting).map(([axis, value]) => `${axis} ${value}`).join(" · ");

/// Whether something of this setting is shown at the choice, as in choices.h.
const agrees = (setting, choice) => Object.entries(setting).every(([axis, value]) => choice[axis] === undefined || choice[axis] === value);

function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}

const darkScheme = window.matchMedia("(prefers-color-scheme: dark)");
const seriesColor = (style) => (darkScheme.matches ? style.dark : style.color);

function dot(color) {
  const sign = element("i", { className: "dot" });
  sign.style.background = color;
  return sign;
}
