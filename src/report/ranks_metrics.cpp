#include "report/ranks_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/scheme_names.h"

namespace longca {
namespace {

void keep_larger(std::optional<double>& largest, const std::optional<double>& value) {
  if (value) largest = std::max(largest.value_or(*value), *value);
}

}  // namespace

std::optional<double> exposed_percent(const Record* record) {
  const auto exposed = metric_of(record, "exposed_comm_ms");
  const auto time = metric_of(record, "time_ms");
  if (!exposed || !time || *time <= 0) return std::nullopt;
  return 100 * *exposed / *time;
}

std::string format_percent(double percent) {
  return fmt::format("{:.0f}", std::round(percent) + 0.0);
}

BytesCheck check_bytes(const Record* record) {
  const auto sent = metric_of(record, "bytes_sent");
  const auto formula = metric_of(record, "bytes_formula");
  if (!sent || !formula) return BytesCheck::unknown;
  return *sent == *formula ? BytesCheck::equal : BytesCheck::differs;
}

std::string_view mark_of(BytesCheck check) {
  switch (check) {
    case BytesCheck::unknown:
      return "";
    case BytesCheck::equal:
      return "=";
    case BytesCheck::differs:
      return "≠";
  }
  return "";
}

std::vector<const Record*> cells_off_formula(const View& view) {
  std::vector<const Record*> cells;
  for (const ViewSection& section : view.sections) {
    for (const ViewGroup& group : section.groups) {
      for (const ViewRow& row : group.rows) {
        for (const Record* record : row.passes) {
          if (check_bytes(record) == BytesCheck::differs) cells.push_back(record);
        }
      }
    }
  }
  return cells;
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

std::vector<std::string> scheme_settings(std::span<const Record> records) {
  const SchemeNames names(records);
  std::vector<std::string> settings;
  if (!names.shards().empty()) settings.push_back("shard " + names.shards());
  if (!names.transports().empty()) settings.push_back("transport " + names.transports());
  return settings;
}

}  // namespace longca
