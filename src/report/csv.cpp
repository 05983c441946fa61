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
#include "report/data/ranking.h"
#include "report/view.h"

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

/// Whether each record is the fastest of its problem and pass, or a tie with it, where tables mark
/// it (Ranking::is_marked).
class Firsts {
 public:
  explicit Firsts(std::span<const Record> records) : split_(split_records(records)) {
    for (const auto* part : {&split_.single, &split_.over_ranks}) {
      const View view = make_view(*part);
      for (const ViewSection& section : view.sections) {
        for (const ViewGroup& group : section.groups) add(group);
      }
    }
  }

  /// Of the next record of those that were given, in their order.
  bool next(const Record& record) {
    const Record& same =
        record.c.scheme ? split_.over_ranks[over_ranks_++] : split_.single[single_++];
    return first_.contains(&same);
  }

 private:
  void add(const ViewGroup& group) {
    const PassRankings rankings(group);
    for (const ViewRow& row : group.rows) {
      for (const Pass pass : kPasses) {
        const Record* record = row.pass(pass);  // null of a step that is the sum of both passes
        if (record != nullptr && rankings.is_marked(row, pass)) first_.insert(record);
      }
    }
  }

  SplitRecords split_;
  std::set<const Record*> first_;
  std::size_t single_ = 0, over_ranks_ = 0;
};

void write_line(std::ostream& out, const std::vector<std::string>& fields) {
  for (std::size_t i = 0; i < fields.size(); ++i) out << (i == 0 ? "" : ",") << fields[i];
  out << "\r\n";
}

}  // namespace

void write_csv(std::ostream& out, std::span<const Record> records) {
  const std::vector<Record> latest = average_draws(latest_of_each_build(records));
  const std::vector<std::string> metrics = metric_columns(latest);
  Firsts firsts(records);
  std::vector<std::string> line;
  for (const Axis& axis : axis_table()) line.push_back(field(axis.name));
  line.insert(line.end(), {"status", "reason"});
  for (const std::string& metric : metrics) line.push_back(field(metric));
  line.insert(line.end(), {"repetitions", "stop", "at", "machine", "build", "first"});
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
    line.emplace_back(firsts.next(record) ? "1" : "");
    write_line(out, line);
  }
}

}  // namespace longca
