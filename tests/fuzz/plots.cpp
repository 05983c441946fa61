// The scripts by which gnuplot would draw the figures of records, and the page that lists them.

#include "report/plots.h"

#include "core/printable.h"
#include "fuzz.h"

namespace longca::fuzz {
namespace {

/// Files of figures are named by letters, digits, '.', '_' and '-'.
void require_name(const std::string& stem) {
  for (const char c : stem)
    require(is_name(std::string{'a', c}), "a file named " + printable(stem));
}

}  // namespace

void fuzz(std::string_view text) {
  RecordFile file;
  if (!accepts([&] { file = parse_records(text, "fuzz.jsonl"); })) return;
  std::vector<IndexedPlot> listed;
  for (Plot& plot : plots_of(file.records)) {
    require_name(plot.listed.stem);
    require_printable(plot.script.text);
    listed.push_back(std::move(plot.listed));
  }
  require_printable(plots_index(listed, file.records));
}

}  // namespace longca::fuzz
