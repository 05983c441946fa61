// Two record files, one behind the other, compared, and every view of that.

#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/compare/compare_records.h"
#include "bench/record/record.h"
#include "core/printable.h"
#include "fuzz.h"
#include "report/comparison_text.h"

namespace longca::fuzz {

void fuzz(std::string_view text) {
  RecordFile file;
  if (!accepts([&] { file = parse_records(text, "fuzz.jsonl"); })) return;
  const std::span<const Record> records = file.records;
  const std::size_t half = records.size() / 2;
  accepts([&] {
    const ComparedNames names{"base.jsonl", "new.jsonl"};
    const Comparison comparison =
        compare_records(records.first(half), records.subspan(half), {.across = true});
    std::ostringstream out;
    print_comparison(out, comparison, names, {.width = 80});
    out << '\n';
    write_comparison_html(out, comparison, names);
    require_printable(out.view());
    require_printable(printable_json(comparison_json(comparison, names).dump()));
  });
}

}  // namespace longca::fuzz
