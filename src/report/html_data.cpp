#include "report/html_data.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "bench/suite/axes.h"
#include "report/data/ranking.h"
#include "report/dense_comparison.h"
#include "report/ranks_metrics.h"

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

/// Rounds to the precision that a plot shows: thousands of cells have traces.
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

/// The lists of the page; adding cells fills them.
class Lists {
 public:
  /// Adds a view's cells; `finish` adds to each the fields that only its kind has.
  template <typename Finish>
  void add(const View& view, Finish finish) {
    // The records lie in one array, in the order of the run.
    const std::vector<const Record*> records = view.records();
    const auto first = std::min_element(records.begin(), records.end());
    for (const std::string& kernel : view.kernels) add_distinct(kernels_, kernel);
    for (const ViewSection& section : view.sections) {
      for (const ViewGroup& group : section.groups) {
        masks_.insert(group.mask);
        tokens_.insert(group.tokens);
        const PassRankings rankings(group);
        for (const ViewRow& row : group.rows) {
          for (const Record* record : row.passes) {
            if (record == nullptr) continue;
            passes_.insert(record->c.pass);
            json cell = cell_of(*record);
            cell["best"] = rankings.is_marked(row, record->c.pass);
            if (record->trace) {
              cell["order"] = record - *first;
              cell["trace"] = trace_of(*record->trace);
            }
            add_setting(axes_, cell, section.setting);
            add_setting(axes_, cell, group.setting);
            finish(*record, row, cell);
            cells_.push_back(std::move(cell));
          }
        }
      }
    }
  }

  void write(json& data) {
    data["kernels"] = std::move(kernels_);
    data["masks"] = json::array();
    for (const MaskTraits& mask : mask_table()) {
      if (masks_.erase(mask.name) > 0) data["masks"].push_back(mask.name);
    }
    for (const std::string& unknown : masks_) data["masks"].push_back(unknown);
    data["tokens"] = tokens_;
    data["passes"] = json::array();
    for (const Pass pass : passes_) data["passes"].push_back(to_string(pass));
    data["axes"] = std::move(axes_);
    data["cells"] = std::move(cells_);
  }

 private:
  json kernels_ = json::array();
  std::set<std::string> masks_;
  std::set<std::int64_t> tokens_;
  std::set<Pass> passes_;
  json axes_ = json::array();
  json cells_ = json::array();
};

json unit_of(const View& view) {
  return {{"name", view.unit.name}, {"per_tflops", view.unit.per_tflops}};
}

/// Adds the fields that only cells over ranks have.
void add_scheme(const Record& record, const ViewRow& row, const Baselines& baselines, json& cell) {
  const Case& c = record.c;
  cell["ranks"] = c.ranks.value_or(1);
  cell["scheme"] = *c.scheme;
  cell["row"] = row.scheme;
  if (c.shard) cell["shard"] = *c.shard;
  if (c.factor) cell["factor"] = *c.factor;
  if (c.transport) cell["transport"] = *c.transport;
  const Baseline baseline = baselines.of(c);
  if (baseline.tflops > 0) {
    cell["baseline"] = {
        {"tflops", baseline.tflops}, {"name", baseline.name}, {"same_work", baseline.same_work}};
  }
}

json ranks_of(const View& view, std::span<const Record> records) {
  json scalings = json::array();
  for (const Scaling& scaling : make_scalings(records)) {
    scalings.push_back(
        {{"label", scaling.label()}, {"tokens", scaling.tokens}, {"per_rank", scaling.per_rank}});
  }
  return {{"unit", unit_of(view)}, {"schemes", view.schemes}, {"scalings", std::move(scalings)}};
}

json dense_of(const Record* dense) {
  if (dense == nullptr) return nullptr;
  json object = {{"kernel", dense->c.kernel}, {"mask", dense->c.mask}};
  for (const char* name : {"time_ms", "tflops", "peak_bytes"}) {
    const auto value = metric_of(dense, name);
    if (value && std::isfinite(*value)) object[name] = *value;
  }
  return object;
}

/// Block-sparse attention compared with dense, as sparse.js reads it.
class SparseJson {
 public:
  explicit SparseJson(const DenseComparison& comparison) {
    if (comparison.tables.empty()) return;
    json_ = {{"common", join_axes(comparison.common, " · ")},
             {"tables", json::array()},
             {"groups", json::array()},
             {"lines", json::array()}};
    for (const DensityTable& table : comparison.tables) add(table);
  }

  /// null for a comparison without tables.
  const json& value() const { return json_; }

  /// The index of the cell's line, if it belongs to one.
  std::optional<std::size_t> line_of(const Record& record) const {
    const auto found = lines_.find(&record);
    return found == lines_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  void add(const DensityTable& table) {
    json& tables = json_["tables"];
    std::string name = table.mask;
    if (!table.setting.empty()) name += " · " + join_axes(table.setting, " · ");
    tables.push_back({{"blocks", name}, {"pass", to_string(table.pass)}});
    for (const DensityGroup& group : table.groups) {
      json& groups = json_["groups"];
      groups.push_back({{"table", tables.size() - 1},
                        {"tokens", group.tokens},
                        {"dense", dense_of(group.dense)}});
      for (const DensityLine& line : group.lines) {
        json& lines = json_["lines"];
        for (const Record* cell : line.cells) lines_[cell] = lines.size();
        lines.push_back({{"group", groups.size() - 1},
                         {"kernel", line.kernel},
                         {"break_even", describe_break_even(line.kernel_time)},
                         {"break_even_total", describe_break_even(line.end_to_end)}});
      }
    }
  }

  json json_;
  std::map<const Record*, std::size_t> lines_;
};

}  // namespace

json html_data(const SplitRecords& records) {
  const View single = make_view(records.single);
  const View over_ranks = make_view(records.over_ranks);
  const Baselines baselines(records.single, records.over_ranks);
  Lists lists;
  const SparseJson sparse(compare_with_dense(records.single));
  lists.add(single, [&](const Record& record, const ViewRow&, json& cell) {
    if (const auto line = sparse.line_of(record)) {
      cell["line"] = *line;
      cell["density"] = *record.c.density;
    }
  });
  lists.add(over_ranks, [&](const Record& record, const ViewRow& row, json& cell) {
    add_scheme(record, row, baselines, cell);
  });
  json marks = json::array();
  for (const StatusCode code : marked_statuses()) {
    marks.push_back(
        {{"status", to_string(code)}, {"mark", status_mark(code)}, {"words", status_text(code)}});
  }
  json data = {{"unit", unit_of(single)}, {"marks", std::move(marks)}, {"ranks", nullptr}};
  data["sparse"] = sparse.value();
  if (over_ranks.over_ranks) data["ranks"] = ranks_of(over_ranks, records.over_ranks);
  lists.write(data);
  return data;
}

}  // namespace longca
