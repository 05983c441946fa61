#include "report/csv.h"

#include <fmt/format.h>

#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "bench/record/metrics.h"
#include "bench/record/origin.h"
#include "bench/suite/axes.h"
#include "core/printable.h"
#include "report/data/draws.h"

namespace longca {
namespace {

/// One field of RFC 4180.
std::string field(const std::string& value) {
  constexpr std::string_view kFormulaStarts = "=+-@";
  std::string text = printable(value);
  if (!text.empty() && kFormulaStarts.find(text.front()) != std::string_view::npos) {
    text.insert(0, 1, '\'');
  }
  if (text.find_first_of(",\"") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

/// The metrics of the table, then those that only the records have.
std::vector<std::string> metric_columns(std::span<const Record> records) {
  std::vector<std::string> columns;
  for (const MetricInfo& metric : metric_table()) columns.emplace_back(metric.name);
  std::set<std::string> others;
  for (const Record& record : records) {
    for (const auto& [name, value] : record.metrics) {
      if (find_metric(name) == nullptr) others.insert(name);
    }
  }
  columns.insert(columns.end(), others.begin(), others.end());
  return columns;
}

void write_line(std::ostream& out, const std::vector<std::string>& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) out << (i == 0 ? "" : ",") << fields[i];
  out << "\r\n";
}

}  // namespace

void write_csv(std::ostream& out, std::span<const Record> records) {
  const std::vector<Record> latest = average_draws(latest_of_each_build(records));
  const std::vector<std::string> metrics = metric_columns(latest);
  std::vector<std::string> line;
  for (const Axis& axis : axis_table()) line.push_back(field(axis.name));
  line.insert(line.end(), {"status", "reason"});
  for (const std::string& metric : metrics) line.push_back(field(metric));
  line.insert(line.end(), {"repetitions", "stop", "at", "machine", "build"});
  write_line(out, line);
  for (const Record& record : latest) {
    line.clear();
    for (const Axis& axis : axis_table())
      line.push_back(field(axis_text(axis, record).value_or("")));
    line.push_back(field(std::string(to_string(record.status.code))));
    line.push_back(field(record.status.reason));
    for (const std::string& metric : metrics) {
      const auto found = record.metrics.find(metric);
      line.push_back(found == record.metrics.end() ? "" : fmt::format("{}", found->second));
    }
    line.push_back(record.samples_ms.empty() ? "" : fmt::format("{}", record.samples_ms.size()));
    line.push_back(field(record.stop));
    line.push_back(field(record.at));
    const Origin origin = origin_of(record.env);
    line.push_back(field(origin.machine));
    line.push_back(field(origin.build));
    write_line(out, line);
  }
}

}  // namespace longca
