// Record files, and every view of what is read.

#include <sstream>

#include "bench/record/record.h"
#include "fuzz.h"
#include "report/csv.h"
#include "report/html.h"
#include "report/markdown.h"
#include "report/table.h"

namespace longca::fuzz {
namespace {

template <typename Write>
void require_view(const Write& write) {
  std::ostringstream out;
  accepts([&] { write(out); });
  require_printable(out.view());
}

/// A record that was read is written as a line that reads as the same record.
void require_round_trip(const Record& record) {
  const std::string line = to_line(record);
  const RecordFile again = parse_records(line + "\n", "again");
  require(again.records.size() == 1 && to_line(again.records[0]) == line, "changed: " + line);
}

}  // namespace

void fuzz(std::string_view text) {
  RecordFile file;
  if (!accepts([&] { file = parse_records(text, "fuzz.jsonl"); }) || file.records.empty()) return;
  for (const Record& record : file.records) require_round_trip(record);
  require_view([&](std::ostream& out) { print_table(out, file.records, {.width = 80}); });
  require_view([&](std::ostream& out) { print_table(out, file.records, {.width = 200}); });
  require_view([&](std::ostream& out) { write_csv(out, file.records); });
  require_view([&](std::ostream& out) { write_markdown(out, file.records); });
  require_view([&](std::ostream& out) { out << render_html(file.records, std::nullopt); });
}

}  // namespace longca::fuzz
