#include "report/view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "bench/record/origin.h"
#include "bench/suite/axes.h"
#include "core/counted.h"
#include "report/data/draws.h"
#include "report/data/facets.h"
#include "report/scheme_names.h"
#include "report/short_names.h"

namespace longca {
namespace {

/// Where a facet is shown.
enum class Place { nowhere, common, section, group };

/// Axes that are columns, rows or groups of every table.
bool shapes_table(const Axis& axis) {
  return axis.name == "kernel" || axis.name == "mask" || axis.name == "tokens" ||
         axis.name == "pass" || (axis.over_ranks && !axis.set_by_verb);
}

bool is_over_ranks(const Record& record) {
  return record.c.scheme.has_value();
}

int ranks_of(const Case& c) {
  return c.scheme ? c.ranks.value_or(1) : 0;
}

bool is_row_of(const ViewRow& row, const Case& c) {
  const Case& own = row.c();
  return own.kernel == c.kernel && own.scheme == c.scheme && own.shard == c.shard &&
         own.factor == c.factor && own.transport == c.transport;
}

Place place_of(const Facet& facet, std::span<const Record> records) {
  if (facet.axis != nullptr && shapes_table(*facet.axis)) return Place::nowhere;
  std::set<std::string> values;
  std::map<std::pair<std::string, std::int64_t>, std::optional<std::string>> value_of_group;
  bool varies_in_group = false;
  for (const Record& record : records) {
    const auto value = facet.text(record);
    if (value) values.insert(*value);
    const auto [seen, is_new] = value_of_group.try_emplace({record.c.mask, record.c.tokens}, value);
    varies_in_group = varies_in_group || (!is_new && seen->second != value);
  }
  if (values.empty()) return Place::nowhere;
  if (values.size() == 1 && facet.is_quiet(*values.begin())) return Place::nowhere;
  if (varies_in_group) return Place::section;
  return values.size() == 1 ? Place::common : Place::group;
}

AxisTexts texts_of(const Record& record, std::span<const Facet> facets) {
  AxisTexts texts;
  for (const Facet& facet : facets) {
    if (auto value = facet.text(record)) texts.emplace_back(facet.name, std::move(*value));
  }
  return texts;
}

void sort_view(View& view) {
  std::stable_partition(view.sections.begin(), view.sections.end(),
                        [](const ViewSection& section) { return !names_origin(section.setting); });
  const auto order = [](const ViewGroup& group) {
    return std::make_tuple(mask_index(group.mask), group.mask, group.tokens, group.ranks);
  };
  const auto index_in = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  };
  const auto row_order = [&](const ViewRow& row) {
    return std::make_pair(index_in(view.schemes, row.c().scheme.value_or("")),
                          index_in(view.kernels, row.kernel));
  };
  for (ViewSection& section : view.sections) {
    std::stable_sort(section.groups.begin(), section.groups.end(),
                     [&](const auto& a, const auto& b) { return order(a) < order(b); });
    for (ViewGroup& group : section.groups) {
      std::stable_sort(group.rows.begin(), group.rows.end(),
                       [&](const auto& a, const auto& b) { return row_order(a) < row_order(b); });
    }
  }
}

void count(View& view, const Record& record) {
  ++view.status_counts[record.status.code];
  view.has_pass[static_cast<std::size_t>(record.c.pass)] = true;
  const auto add_name = [](std::vector<std::string>& names, const std::string& name) {
    find_or_add(
        names, [&](const std::string& known) { return known == name; }, name);
  };
  add_name(view.kernels, record.c.kernel);
  if (record.c.scheme) add_name(view.schemes, *record.c.scheme);
}

}  // namespace

std::size_t mask_index(const std::string& mask) {
  const auto masks = mask_table();
  const auto found = std::find_if(masks.begin(), masks.end(),
                                  [&](const MaskTraits& traits) { return traits.name == mask; });
  return static_cast<std::size_t>(found - masks.begin());
}

void keep_larger(std::optional<double>& largest, const std::optional<double>& value) {
  if (value) largest = std::max(largest.value_or(*value), *value);
}

SplitRecords split_records(std::span<const Record> records) {
  SplitRecords split;
  std::vector<Record> latest = average_draws(latest_of_each_build(records));
  shorten_own_names(latest);
  for (Record& record : latest) {
    (is_over_ranks(record) ? split.over_ranks : split.single).push_back(std::move(record));
  }
  return split;
}

std::optional<double> metric_of(const Record* record, const std::string& name) {
  if (record == nullptr) return std::nullopt;
  const auto found = record->metrics.find(name);
  if (found == record->metrics.end()) return std::nullopt;
  return found->second;
}

std::optional<double> largest_error(const Record* record) {
  std::optional<double> largest;
  for (const char* name : {"error_o", "error_dq", "error_dk", "error_dv", "error_dsink"}) {
    keep_larger(largest, metric_of(record, name));
  }
  return largest;
}

std::optional<double> largest_of(const ViewRow& row, const std::string& metric) {
  std::optional<double> largest;
  for (const Record* record : row.passes) keep_larger(largest, metric_of(record, metric));
  return largest;
}

std::optional<double> largest_error(const ViewRow& row) {
  std::optional<double> largest;
  for (const Record* record : row.passes) keep_larger(largest, largest_error(record));
  return largest;
}

std::optional<double> spread_of(const ViewRow& row) {
  return largest_of(row, kDrawsSpread);
}

std::string_view interval_mark(const Record& record) {
  if (!record.metrics.contains("time_ms")) return "";
  if (record.c.platform) return "";  // simulated: there are no repetitions
  if (!record.metrics.contains("time_ci_pct")) return kNoIntervalMark;
  return record.stop == "time_limit" ? kUnsettledMark : "";
}

Pass memory_pass(const View& view) {
  for (const Pass pass : {Pass::backward, Pass::step}) {
    if (view.has(pass)) return pass;
  }
  return Pass::forward;
}

std::optional<double> memory_of(const View& view, const ViewRow& row) {
  return metric_of(row.pass(memory_pass(view)), "peak_bytes");
}

void ViewRow::set(const Record& record) {
  const auto pass = static_cast<std::size_t>(record.c.pass);
  passes[pass] = &record;
  intervals[pass] = interval_of_time(record);
}

std::string ViewGroup::title() const {
  return setting.empty() ? mask : fmt::format("{} ({})", mask, join_axes(setting, ", "));
}

int View::cells() const {
  int sum = 0;
  for (const auto& [status, n] : status_counts) sum += n;
  return sum;
}

std::vector<const Record*> View::records() const {
  std::vector<const Record*> found;
  for (const ViewSection& section : sections) {
    for (const ViewGroup& group : section.groups) {
      for (const ViewRow& row : group.rows) {
        for (const Record* record : row.passes) {
          if (record != nullptr) found.push_back(record);
        }
      }
    }
  }
  return found;
}

View make_view(std::span<const Record> records) {
  View view;
  view.over_ranks = !records.empty() && is_over_ranks(records.front());
  const SchemeNames names(records);
  std::vector<Facet> section_facets;
  std::vector<Facet> group_facets;
  for (Facet& facet : facets_of(records)) {
    const Place place = place_of(facet, records);
    if (place == Place::common) {
      const auto has = [&](const Record& record) { return facet.text(record).has_value(); };
      const auto first = std::find_if(records.begin(), records.end(), has);
      view.common.emplace_back(facet.name, *facet.text(*first));
    } else if (place == Place::section) {
      section_facets.push_back(std::move(facet));
    } else if (place == Place::group) {
      group_facets.push_back(std::move(facet));
    }
  }
  add_origins(view.common, records);
  double largest = 0;
  std::map<AxisTexts, std::size_t> sections;  // thousands in a file of as many machines
  for (const Record& record : records) {
    count(view, record);
    largest = std::max(largest, metric_of(&record, "tflops").value_or(0));
    view.has_draws = view.has_draws || record.metrics.contains(kDraws);
    const AxisTexts setting = texts_of(record, section_facets);
    const auto [seen, is_new] = sections.try_emplace(setting, view.sections.size());
    if (is_new) view.sections.push_back({setting, {}});
    ViewSection& section = view.sections[seen->second];
    const Case& c = record.c;
    ViewGroup& group = find_or_add(
        section.groups,
        [&](const ViewGroup& known) {
          return known.mask == c.mask && known.tokens == c.tokens && known.ranks == ranks_of(c);
        },
        ViewGroup{c.mask, c.tokens, ranks_of(c), texts_of(record, group_facets), {}});
    ViewRow row{c.kernel, names.row(c)};
    row.passes[static_cast<std::size_t>(c.pass)] = &record;
    find_or_add(
        group.rows, [&](const ViewRow& known) { return is_row_of(known, c); }, row)
        .set(record);
  }
  view.unit = rate_unit(largest);
  sort_view(view);
  return view;
}

std::vector<Reason> collect_reasons(const View& view) {
  struct Shared {
    Reason reason;
    std::string predicate;  ///< the sentence without the kernel at its beginning
  };
  std::vector<Shared> found;
  for (const Record* record : view.records()) {
    if (record->status.ok()) continue;
    const Case& c = record->c;
    const std::string& sentence = record->status.reason;
    const bool named = sentence.starts_with(c.kernel + " ");
    const std::string predicate = named ? sentence.substr(c.kernel.size() + 1) : sentence;
    Reason& reason =
        find_or_add(
            found,
            [&](const Shared& known) {
              return known.reason.code == record->status.code && known.predicate == predicate;
            },
            Shared{{{}, record->status.code, sentence}, predicate})
            .reason;
    ++reason.cells;
    std::string kernel = c.scheme ? *c.scheme + ", " + c.kernel : c.kernel;
    if (std::ranges::find(reason.kernels, kernel) != reason.kernels.end()) continue;
    reason.kernels.push_back(std::move(kernel));
    if (reason.kernels.size() > 1) reason.sentence = predicate;
  }
  std::vector<Reason> reasons;
  for (Shared& shared : found) reasons.push_back(std::move(shared.reason));
  return reasons;
}

std::string join_kernels(std::span<const std::string> kernels) {
  const bool pairs = std::ranges::any_of(
      kernels, [](const std::string& name) { return name.find(',') != std::string::npos; });
  return fmt::format("{}", fmt::join(kernels, pairs ? "; " : ", "));
}

std::string describe_counts(const View& view) {
  std::string text = counted(view.cells(), "cell");
  std::string_view separator = ": ";
  for (const auto& [status, n] : view.status_counts) {
    text += fmt::format("{}{} {}", separator, n, to_string(status));
    separator = ", ";
  }
  return text;
}

}  // namespace longca
