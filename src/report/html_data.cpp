#include "report/html_data.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "bench/suite/axes.h"
#include "report/scaling.h"
#include "report/sparse_json.h"

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

/// The lists of the page, filled while cells are added to it.
class Lists {
 public:
  /// Adds a view's cells; `finish` adds to each what only its kind has.
  template <typename Finish>
  void add(const View& view, Finish finish) {
    const Record* first = first_record(view);
    for (const std::string& kernel : view.kernels) add_distinct(kernels_, kernel);
    for (const ViewSection& section : view.sections) {
      for (const ViewGroup& group : section.groups) {
        masks_.insert(group.mask);
        tokens_.insert(group.tokens);
        for (const ViewRow& row : group.rows) {
          for (const Record* record : row.passes) {
            if (record == nullptr) continue;
            passes_.insert(record->c.pass);
            json cell = cell_of(*record);
            cell["best"] = record == group.best(record->c.pass);
            if (record->trace) {
              cell["order"] = record - first;
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

/// What only cells over ranks have.
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
        {{"status", to_string(code)}, {"mark", status_mark(code)}, {"words", status_words(code)}});
  }
  json data = {{"unit", unit_of(single)}, {"marks", std::move(marks)}, {"ranks", nullptr}};
  data["sparse"] = sparse.json();
  if (over_ranks.over_ranks) data["ranks"] = ranks_of(over_ranks, records.over_ranks);
  lists.write(data);
  return data;
}

}  // namespace longca
