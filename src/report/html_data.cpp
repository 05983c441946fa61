#include "report/html_data.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace longca {
namespace {

using nlohmann::json;

void add_distinct(json& values, const json& value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
}

void add_setting(json& axes, json& cell, const AxisTexts& setting) {
  for (const auto& [name, value] : setting) {
    cell["setting"][name] = value;
    auto axis = std::find_if(axes.begin(), axes.end(),
                             [&](const json& known) { return known.at("name") == name; });
    if (axis == axes.end()) {
      axes.push_back({{"name", name}, {"values", json::array()}});
      axis = axes.end() - 1;
    }
    add_distinct(axis->at("values"), value);
  }
}

/// Figures with the precision that a plot shows: thousands of cells have traces.
json rounded(const std::vector<double>& values, double unit) {
  json list = json::array();
  for (const double value : values) list.push_back(std::round(value / unit) * unit);
  return list;
}

json trace_of(const DeviceTrace& trace) {
  return {{"t_ms", rounded(trace.t_ms, 1)},
          {"sm_clock_mhz", rounded(trace.sm_clock_mhz, 1)},
          {"power_w", rounded(trace.power_w, 1)}};
}

/// The first of the records that the view shows; they lie in one array, in the order of the run.
const Record* first_record(const View& view) {
  const Record* first = nullptr;
  for (const ViewSection& section : view.sections) {
    for (const ViewGroup& group : section.groups) {
      for (const ViewRow& row : group.rows) {
        for (const Record* record : row.passes) {
          if (record != nullptr && (first == nullptr || record < first)) first = record;
        }
      }
    }
  }
  return first;
}

json cell_of(const Record& record) {
  json metrics = json::object();
  for (const auto& [name, value] : record.metrics) {
    if (std::isfinite(value)) metrics[name] = value;
  }
  return {{"kernel", record.c.kernel},
          {"mask", record.c.mask},
          {"tokens", record.c.tokens},
          {"pass", to_string(record.c.pass)},
          {"setting", json::object()},
          {"status", to_string(record.status.code)},
          {"reason", record.status.reason},
          {"metrics", std::move(metrics)},
          {"stop", record.stop},
          {"notes", record.notes}};
}

}  // namespace

json html_data(const View& view) {
  json masks = json::array();
  json axes = json::array();
  json cells = json::array();
  std::set<std::int64_t> tokens;
  const Record* first = first_record(view);
  for (const ViewSection& section : view.sections) {
    for (const ViewGroup& group : section.groups) {
      add_distinct(masks, group.mask);
      tokens.insert(group.tokens);
      for (const ViewRow& row : group.rows) {
        for (const Record* record : row.passes) {
          if (record == nullptr) continue;
          json cell = cell_of(*record);
          cell["best"] = record == group.best(record->c.pass);
          if (record->trace) {
            cell["order"] = record - first;
            cell["trace"] = trace_of(*record->trace);
          }
          add_setting(axes, cell, section.setting);
          add_setting(axes, cell, group.setting);
          cells.push_back(std::move(cell));
        }
      }
    }
  }
  json passes = json::array();
  for (const Pass pass : {Pass::forward, Pass::backward}) {
    if (view.has(pass)) passes.push_back(to_string(pass));
  }
  json marks = json::array();
  for (const StatusCode code : marked_statuses()) {
    marks.push_back(
        {{"status", to_string(code)}, {"mark", status_mark(code)}, {"words", status_words(code)}});
  }
  return {{"unit", {{"name", view.unit.name}, {"per_tflops", view.unit.per_tflops}}},
          {"kernels", view.kernels},
          {"masks", std::move(masks)},
          {"tokens", tokens},
          {"passes", std::move(passes)},
          {"axes", std::move(axes)},
          {"marks", std::move(marks)},
          {"cells", std::move(cells)}};
}

}  // namespace longca
