"use strict";
// The records (data), and which of them the filters show (state).

const data = JSON.parse(document.getElementById("data").textContent);

const PALETTE = ["#2f6fbb", "#e08a3c", "#3c9d6b", "#b8527f", "#8468b8", "#c2a02e", "#45a3b5", "#c4534a", "#7a8290", "#6f7f35"];
const kernelColor = (kernel) => PALETTE[data.kernels.indexOf(kernel) % PALETTE.length];

/// "8K" = 8192. These texts are those of format.h.
function tokensText(tokens) {
  if (tokens >= 1 << 20 && tokens % (1 << 20) === 0) return `${tokens / (1 << 20)}M`;
  if (tokens >= 1024 && tokens % 1024 === 0) return `${tokens / 1024}K`;
  return String(tokens);
}

function figureText(value) {
  if (value === undefined || value === null) return "";
  const size = Math.abs(value);
  if (size >= 1000) return value.toFixed(0);
  if (size >= 10) return value.toFixed(1);
  if (size >= 1 || size === 0) return value.toFixed(2);
  return value.toFixed(size < 1e-6 ? 9 : 2 - Math.floor(Math.log10(size)));
}

function bytesText(bytes) {
  if (bytes === undefined) return "";
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.length; ++unit) bytes /= 1024;
  return `${bytes.toFixed(unit === 0 || bytes >= 100 ? 0 : 1)} ${units[unit]}`;
}

const errorText = (error) => (error === undefined ? "" : error.toExponential(1));

const markOf = (status) => data.marks.find((known) => known.status === status)?.mark ?? "";

const isOverRanks = (cell) => cell.scheme !== undefined;
const isSingle = (cell) => cell.scheme === undefined;

/// The rate in the unit of its kind: cells over ranks have their own, per rank.
function rateOf(cell) {
  if (cell.status !== "ok" || cell.metrics.tflops === undefined) return undefined;
  return cell.metrics.tflops * (isOverRanks(cell) ? data.ranks.unit : data.unit).per_tflops;
}

/// The rate divided by the same kernel's for the same work on one device or rank.
const efficiency = (cell) => (cell.baseline?.same_work && cell.status === "ok" ? cell.metrics.tflops / cell.baseline.tflops : undefined);
/// The percentage of the time that communication adds to the ranks' steps.
const exposedShare = (cell) => (cell.metrics.exposed_comm_ms === undefined ? undefined : (100 * cell.metrics.exposed_comm_ms) / cell.metrics.time_ms);
const percentText = (percent) => (percent === undefined ? "" : `${percent.toFixed(1)} %`);

function largestError(cell) {
  const errors = ["error_o", "error_dq", "error_dk", "error_dv"].map((name) => cell.metrics[name]).filter((e) => e !== undefined);
  return errors.length ? Math.max(...errors) : undefined;
}

/// "dtype float32 · heads 8:2": the axes that vary, without kernel, mask, tokens and pass.
const settingText = (cell) => Object.entries(cell.setting).map(([axis, value]) => `${axis} ${value}`).join(" · ");

/// A dimension of cells over ranks; its values in order of appearance unless given.
function rankDimension(name, values = [...new Set(data.cells.map((cell) => cell[name]))]) {
  return { name, values: values.filter((value) => value !== undefined), of: (cell) => cell[name], text: String };
}

// Every dimension that can be filtered: its values in order, how to read it from a cell, how to show it.
const dimensions = [
  { name: "kernel", values: data.kernels, of: (cell) => cell.kernel, text: String },
  { name: "mask", values: data.masks, of: (cell) => cell.mask, text: String },
  { name: "length", values: data.tokens, of: (cell) => cell.tokens, text: tokensText },
  { name: "pass", values: data.passes, of: (cell) => cell.pass, text: String },
  ...(data.ranks ? [
    rankDimension("ranks", [...new Set(data.cells.map((cell) => cell.ranks))].sort((a, b) => a - b)),
    rankDimension("scheme", data.ranks.schemes), rankDimension("shard"), rankDimension("factor"), rankDimension("transport"),
  ] : []),
  ...data.axes.map((axis) => ({ name: axis.name, values: axis.values, of: (cell) => cell.setting[axis.name], text: String })),
];

const state = {
  shown: new Map(dimensions.map((dimension) => [dimension.name, new Set(dimension.values)])),
};

// A filter does not apply to cells without a value on its axis (a mask without density).
const isShown = (cell) =>
  dimensions.every((dimension) => {
    const value = dimension.of(cell);
    return value === undefined || state.shown.get(dimension.name).has(value);
  });

const shownCells = () => data.cells.filter(isShown);

function element(tag, properties = {}, ...children) {
  const node = Object.assign(document.createElement(tag), properties);
  node.append(...children);
  return node;
}
