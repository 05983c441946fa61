#include "report/html_cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "bench/record/origin.h"
#include "report/data/repeat_command.h"

namespace longca {
namespace {

using nlohmann::json;

/// Where a block-sparse cell stands in the comparison with dense.
struct SparsePlace {
  const DensityGroup* group = nullptr;
  const DensityLine* line = nullptr;
};

std::map<const Record*, SparsePlace> sparse_places(const DenseComparison& comparison) {
  std::map<const Record*, SparsePlace> places;
  for (const DensityTable& table : comparison.tables) {
    for (const DensityGroup& group : table.groups) {
      for (const DensityLine& line : group.lines) {
        for (const Record* cell : line.cells) places[cell] = {&group, &line};
      }
    }
  }
  return places;
}

void add_if(std::map<std::string, double>& metrics, const char* name,
            const std::optional<double>& value) {
  if (value && std::isfinite(*value)) metrics[name] = *value;
}

std::map<std::string, double> metrics_of(const Record& record, const RateUnit& unit) {
  std::map<std::string, double> metrics;
  for (const auto& [name, value] : record.metrics) add_if(metrics, name.c_str(), value);
  const auto rate = metrics.extract("tflops");
  if (!rate.empty() && record.status.ok()) metrics["rate"] = rate.mapped() * unit.per_tflops;
  add_if(metrics, "error", largest_error(&record));
  return metrics;
}

void add_baseline(std::map<std::string, double>& metrics, const Record& record,
                  const Baseline& baseline) {
  const auto rate = metric_of(&record, "tflops");
  if (rate && record.status.ok() && baseline.same_work) {
    metrics["efficiency"] = *rate / baseline.tflops;
  }
  add_if(metrics, "exposed_pct", exposed_percent(&record));
}

void add_sparse(std::map<std::string, double>& metrics, const Record& record, const Record* dense) {
  add_if(metrics, "of_dense", time_of_dense(&record, dense));
  add_if(metrics, "total_of_dense", end_to_end_of_dense(&record, dense));
  const auto own = metric_if_ok(&record, "peak_bytes");
  const auto of_dense = metric_of(dense, "peak_bytes");
  if (own && of_dense && *of_dense > 0) metrics["memory_of_dense"] = *own / *of_dense;
  if (const auto share = selection_share(&record)) metrics["selection_pct"] = 100 * *share;
}

/// At most `most` of a list of `count`, evenly spaced.
std::vector<std::size_t> spread(std::size_t count, std::size_t most) {
  std::vector<std::size_t> places;
  const std::size_t shown = std::min(count, most);
  for (std::size_t i = 0; i < shown; ++i) places.push_back(i * count / shown);
  return places;
}

json samples_json(const std::vector<double>& samples) {
  constexpr double kParts = 1e4;
  json list = json::array();
  if (samples.empty()) return list;
  const double first = samples.front();
  list.push_back(short_number(first));
  for (const std::size_t i : spread(samples.size(), HtmlCells::kMaxSamples)) {
    list.push_back(first > 0 ? short_number(std::round(kParts * (samples[i] / first - 1)))
                             : json(0));
  }
  return list;
}

std::string notes_text(const Record& record) {
  std::string text = record.status.reason;
  for (const auto& [name, note] : record.notes) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", name, note);
  }
  return text;
}

/// "fa3", or "fa3 (inputs normal)".
std::string dense_text(const DensityGroup& group) {
  const std::string other = group.dense_difference();
  return group.dense->c.kernel + (other.empty() ? "" : " (" + other + ")");
}

json optional_json(const std::optional<std::string>& text) {
  return text ? json(*text) : json();
}

}  // namespace

json short_number(double value, int digits) {
  constexpr double kExact = 9007199254740992;  // 2^53
  if (value == std::floor(value) && std::abs(value) < kExact) {
    return static_cast<std::int64_t>(value);
  }
  return std::strtod(fmt::format("{:.{}g}", value, digits).c_str(), nullptr);
}

json axes_json(const AxisTexts& axes) {
  json object = json::object();
  for (const auto& [name, value] : axes) object[name] = value;
  return object;
}

void HtmlCells::put(const std::string& column, json value) {
  Column& own = columns_[column];
  const auto append = [&](std::size_t index, std::size_t cells) {
    if (cells == 0) return;
    if (own.runs.empty() || own.runs[own.runs.size() - 2] != index) {
      own.runs.insert(own.runs.end(), {index, 0});
    }
    own.runs.back() += cells;
    own.cells += cells;
  };
  append(0, places_.size() - 1 - own.cells);  // cells before that have no such value
  std::size_t index = 0;
  if (!value.is_null()) {
    const auto [known, is_new] = own.known.try_emplace(value, own.values.size());
    if (is_new) own.values.push_back(std::move(value));
    index = known->second;
  }
  append(index, 1);
}

void HtmlCells::put_metrics(const Metrics& metrics) {
  std::vector<std::string> names;
  json row = json::array({0});
  for (const auto& [name, value] : metrics) {
    names.push_back(name);
    row.push_back(short_number(value, name.starts_with("error") ? 3 : 5));
  }
  const auto [set, is_new] = metric_sets_.try_emplace(names, metric_sets_.size());
  if (is_new) metric_names_.push_back(names);
  row[0] = set->second;
  metric_rows_.push_back(std::move(row));
}

json HtmlCells::traces_json() const {
  const std::size_t most =
      std::max<std::size_t>(2, kMaxTracePoints / std::max<std::size_t>(1, traced_.size()));
  json list = json::array();
  for (const auto& [place, cell] : traced_) {
    const DeviceTrace& trace = *place.second->trace;
    json lists = json::array({cell});
    for (const auto* values : {&trace.t_ms, &trace.sm_clock_mhz, &trace.power_w}) {
      json numbers = json::array();
      for (const std::size_t i : spread(values->size(), most)) {
        numbers.push_back(short_number(std::round((*values)[i])));
      }
      lists.push_back(std::move(numbers));
    }
    list.push_back(std::move(lists));
  }
  return list;
}

void HtmlCells::add_cell(const Record& record, const ViewRow& row, const json& setting) {
  const Case& c = record.c;
  put("kind", c.scheme ? "ranks" : "devices");
  put("kernel", c.kernel);
  put("mask", c.mask);
  put("tokens", c.tokens);
  put("pass", to_string(c.pass));
  put("setting", setting);
  put("status", to_string(record.status.code));
  put("reason", notes_text(record));
  put("throttled",
      record.notes.contains("throttled") ? json(record.notes.at("throttled")) : json());
  put("stop", record.stop);
  const Origin origin = origin_of(record.env);
  put("origin", origin.machine + "; " + origin.build);
  put("samples_of", record.samples_ms.size());
  samples_.push_back(samples_json(record.samples_ms));
  if (!record.rank_times_ms.empty()) {
    rank_times_.push_back({places_.size() - 1, samples_json(record.rank_times_ms)});
  }
  RepeatCommand command = repeat_command(record);
  put("command", std::move(command.row));
  put("command_problem", std::move(command.problem));
  if (!c.scheme) return;
  put("row", row.scheme);
  put("scheme", *c.scheme);
  put("ranks", c.ranks.value_or(1));
  put("shard", optional_json(c.shard));
  put("factor", c.factor ? json(*c.factor) : json());
  put("transport", optional_json(c.transport));
}

void HtmlCells::add(const View& view, const Baselines& baselines,
                    const DenseComparison& comparison) {
  const std::map<const Record*, SparsePlace> sparse = sparse_places(comparison);
  for (const ViewSection& section : view.sections) {
    for (const ViewGroup& group : section.groups) {
      AxisTexts axes = section.setting;
      axes.insert(axes.end(), group.setting.begin(), group.setting.end());
      const json setting = axes_json(axes);
      for (const ViewRow& row : group.rows) {
        for (const Record* record : row.passes) {
          if (record == nullptr) continue;
          places_.emplace(record, places_.size());
          add_cell(*record, row, setting);
          if (record->trace)
            traced_.emplace(std::pair(!view.over_ranks, record), places_.size() - 1);
          Metrics metrics = metrics_of(*record, view.unit);
          if (view.over_ranks) add_baseline(metrics, *record, baselines.of(*record));
          if (const auto found = sparse.find(record); found != sparse.end()) {
            const auto& [of_group, line] = found->second;
            add_sparse(metrics, *record, of_group->dense);
            if (of_group->dense != nullptr) put("dense", dense_text(*of_group));
            put("break_even", describe_break_even(line->kernel_time));
            put("break_even_total", describe_break_even(line->end_to_end));
          }
          put_metrics(metrics);
        }
      }
    }
  }
}

json HtmlCells::write() const {
  json columns = json::object();
  for (const auto& [name, column] : columns_) {
    columns[name] = {{"values", column.values}, {"runs", column.runs}};
  }
  return {{"count", places_.size()},
          {"columns", std::move(columns)},
          {"metrics", {{"sets", metric_names_}, {"rows", metric_rows_}}},
          {"samples", samples_},
          {"rank_times", rank_times_},
          {"traces", traces_json()}};
}

}  // namespace longca
