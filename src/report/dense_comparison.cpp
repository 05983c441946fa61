#include "report/dense_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "bench/record/origin.h"
#include "report/data/facets.h"
#include "report/data/ranking.h"

namespace longca {
namespace {

std::string_view dense_mask_of(const Case& c) {
  return c.block_causal.value_or(0) != 0 ? "causal" : "full";
}

bool is_block_sparse(const Record& record) {
  return record.c.density.has_value() && !record.c.scheme;
}

/// Whatever the inputs of both are.
bool is_dense_of(const Record& dense, const Record& sparse) {
  const Case& a = dense.c;
  const Case& b = sparse.c;
  return !a.scheme && a.mask == dense_mask_of(b) && a.tokens == b.tokens &&
         a.heads_q == b.heads_q && a.heads_k == b.heads_k && a.head_dim == b.head_dim &&
         a.head_dim_v == b.head_dim_v && a.dtype == b.dtype && a.pass == b.pass &&
         a.deterministic == b.deterministic && a.sink == b.sink && a.softcap == b.softcap &&
         a.device == b.device && a.mode == b.mode &&
         machine_of_case(dense) == machine_of_case(sparse);
}

const Record* fastest_dense(std::span<const Record> records, const Record& sparse) {
  const Record* best = nullptr;
  const Record* best_of_normal = nullptr;
  for (const Record& record : records) {
    const auto time = metric_if_ok(&record, "time_ms");
    if (!time || !(*time > 0) || !is_dense_of(record, sparse)) continue;
    const auto keep_faster = [&](const Record*& kept) {
      if (kept == nullptr || *time < *metric_of(kept, "time_ms")) kept = &record;
    };
    if (record.c.inputs == sparse.c.inputs) keep_faster(best);
    if (!record.c.inputs) keep_faster(best_of_normal);
  }
  return best != nullptr ? best : best_of_normal;
}

/// Whether cells that differ on the axis stand in different tables.
bool separates_tables(const Facet& facet) {
  static constexpr std::array kInsideTable = {"kernel", "mask", "tokens", "pass", "density"};
  return !(facet.axis != nullptr && facet.axis->over_ranks) &&
         std::find(kInsideTable.begin(), kInsideTable.end(), facet.name) == kInsideTable.end();
}

std::vector<Facet> varying_facets(std::span<const Record> records,
                                  const std::vector<const Record*>& cells, AxisTexts& common) {
  std::vector<Facet> varying;
  for (Facet& facet : facets_of(records)) {
    if (!separates_tables(facet)) continue;
    std::set<std::optional<std::string>> values;
    for (const Record* cell : cells) values.insert(facet.text(*cell));
    if (values.size() > 1) {
      varying.push_back(std::move(facet));
    } else if (!values.empty() && *values.begin() && !facet.is_quiet(**values.begin())) {
      common.emplace_back(facet.name, **values.begin());
    }
  }
  return varying;
}

AxisTexts setting_of(const Record& record, const std::vector<Facet>& facets) {
  AxisTexts setting;
  for (const Facet& facet : facets) {
    if (auto value = facet.text(record)) setting.emplace_back(facet.name, std::move(*value));
  }
  return setting;
}

void add_cell(DenseComparison& comparison, const Record& record, const AxisTexts& setting) {
  const Case& c = record.c;
  DensityTable& table = find_or_add(
      comparison.tables,
      [&](const DensityTable& known) {
        return known.mask == c.mask && known.pass == c.pass && known.setting == setting;
      },
      DensityTable{c.mask, c.pass, setting, {}, {}});
  find_or_add(
      table.densities, [&](double density) { return density == *c.density; }, *c.density);
  DensityGroup& group = find_or_add(
      table.groups, [&](const DensityGroup& known) { return known.tokens == c.tokens; },
      DensityGroup{c.tokens, nullptr, {}, {}});
  find_or_add(
      group.lines, [&](const DensityLine& known) { return known.kernel == c.kernel; },
      DensityLine{c.kernel, {}, {}, {}})
      .cells.push_back(&record);
}

void sort_comparison(DenseComparison& comparison) {
  const auto kernel_index = [&](const DensityLine& line) {
    return std::find(comparison.kernels.begin(), comparison.kernels.end(), line.kernel);
  };
  std::vector<AxisTexts> settings;
  for (const DensityTable& table : comparison.tables) settings.push_back(table.setting);
  const auto order = [&](const DensityTable& table) {
    return std::make_tuple(mask_index(table.mask), table.mask,
                           std::find(settings.begin(), settings.end(), table.setting), table.pass);
  };
  std::stable_sort(comparison.tables.begin(), comparison.tables.end(),
                   [&](const auto& a, const auto& b) { return order(a) < order(b); });
  for (DensityTable& table : comparison.tables) {
    std::sort(table.densities.begin(), table.densities.end());
    std::sort(table.groups.begin(), table.groups.end(),
              [](const auto& a, const auto& b) { return a.tokens < b.tokens; });
    for (DensityGroup& group : table.groups) {
      std::stable_sort(group.lines.begin(), group.lines.end(), [&](const auto& a, const auto& b) {
        return kernel_index(a) < kernel_index(b);
      });
      for (DensityLine& line : group.lines) {
        std::sort(line.cells.begin(), line.cells.end(),
                  [](const Record* a, const Record* b) { return *a->c.density < *b->c.density; });
      }
    }
  }
}

template <typename RatioOf>
BreakEven break_even_of(const DensityLine& line, const Record* dense, RatioOf ratio_of) {
  std::vector<DensityRatio> ratios;
  for (const Record* cell : line.cells) {
    if (const auto r = ratio_of(cell, dense)) ratios.push_back({*cell->c.density, *r});
  }
  return find_break_even(ratios);
}

/// The cells of a density that the view of one pass marks.
void add_marked(DensityGroup& group, double density, Pass pass) {
  ViewGroup rivals;
  for (const DensityLine& line : group.lines) {
    const Record* cell = line.at(density);
    if (cell == nullptr) continue;
    rivals.rows.push_back({line.kernel, ""});
    rivals.rows.back().set(*cell);
  }
  const PassRankings rankings(rivals);
  for (const ViewRow& row : rivals.rows) {
    if (rankings.is_marked(row, pass)) group.marked.push_back(row.pass(pass));
  }
}

void compare_lines(DenseComparison& comparison, std::span<const Record> records) {
  for (DensityTable& table : comparison.tables) {
    for (DensityGroup& group : table.groups) {
      group.dense = fastest_dense(records, *group.lines.front().cells.front());
      for (const double density : table.densities) add_marked(group, density, table.pass);
      for (DensityLine& line : group.lines) {
        line.kernel_time = break_even_of(line, group.dense, time_of_dense);
        line.end_to_end = break_even_of(line, group.dense, end_to_end_of_dense);
      }
    }
  }
}

bool is_worth_showing(const DenseComparison& comparison) {
  return std::any_of(comparison.tables.begin(), comparison.tables.end(),
                     [](const DensityTable& table) { return table.densities.size() > 1; }) ||
         comparison.has("selection_ms") || comparison.has("kept_mass");
}

}  // namespace

const Record* DensityLine::at(double density) const {
  const auto found = std::find_if(cells.begin(), cells.end(),
                                  [&](const Record* cell) { return cell->c.density == density; });
  return found == cells.end() ? nullptr : *found;
}

bool DensityLine::has_number() const {
  return std::any_of(cells.begin(), cells.end(),
                     [](const Record* cell) { return metric_if_ok(cell, "time_ms").has_value(); });
}

bool DensityGroup::has_number() const {
  return std::any_of(lines.begin(), lines.end(),
                     [](const DensityLine& line) { return line.has_number(); });
}

bool DensityGroup::is_marked(const Record* cell) const {
  return std::ranges::find(marked, cell) != marked.end();
}

std::string DensityGroup::dense_difference() const {
  const bool differs = dense != nullptr && dense->c.inputs != lines.front().cells.front()->c.inputs;
  return differs ? "inputs normal" : "";
}

const Record* DensityGroup::fastest(double density) const {
  const Record* best = nullptr;
  for (const DensityLine& line : lines) {
    const Record* cell = line.at(density);
    const auto time = metric_if_ok(cell, "time_ms");
    if (time && (best == nullptr || *time < *metric_of(best, "time_ms"))) best = cell;
  }
  return best;
}

std::optional<double> DensityGroup::metric_at(double density, const std::string& name) const {
  for (const DensityLine& line : lines) {
    if (const auto value = metric_of(line.at(density), name)) return value;
  }
  return std::nullopt;
}

std::optional<double> DensityGroup::largest_at(double density, const std::string& name) const {
  std::optional<double> largest;
  for (const DensityLine& line : lines) {
    const auto value = metric_of(line.at(density), name);
    if (value) largest = std::max(largest.value_or(*value), *value);
  }
  return largest;
}

std::string DensityTable::title() const {
  return fmt::format("{}, {}", mask, to_string(pass));
}

bool DensityTable::has_number() const {
  return std::any_of(groups.begin(), groups.end(),
                     [](const DensityGroup& group) { return group.has_number(); });
}

bool DensityTable::has(const std::string& metric) const {
  return std::any_of(groups.begin(), groups.end(), [&](const DensityGroup& group) {
    return std::any_of(densities.begin(), densities.end(), [&](double density) {
      return group.metric_at(density, metric).has_value();
    });
  });
}

bool DenseComparison::has(const std::string& metric) const {
  return std::any_of(tables.begin(), tables.end(),
                     [&](const DensityTable& table) { return table.has(metric); });
}

DenseComparison compare_with_dense(std::span<const Record> records) {
  std::vector<const Record*> cells;
  double largest = 0;
  DenseComparison comparison;
  for (const Record& record : records) {
    find_or_add(
        comparison.kernels, [&](const auto& name) { return name == record.c.kernel; },
        record.c.kernel);
    if (!is_block_sparse(record)) continue;
    cells.push_back(&record);
    largest = std::max(largest, metric_of(&record, "tflops").value_or(0));
  }
  comparison.unit = rate_unit(largest);
  const std::vector<Facet> facets = varying_facets(records, cells, comparison.common);
  add_origins(comparison.common, records);
  for (const Record* cell : cells) add_cell(comparison, *cell, setting_of(*cell, facets));
  if (!is_worth_showing(comparison)) return {};
  sort_comparison(comparison);
  compare_lines(comparison, records);
  return comparison;
}

}  // namespace longca
