#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/record/record.h"
#include "core/format_figure.h"

namespace longca {

/// Figures, statuses and axes as text for people: few digits, a unit that suits the size. Views for
/// programs (JSON, CSV) write plain numbers instead.

/// Token counts: "8K" = 8192, "1M" = 1048576, "1000".
std::string format_tokens(std::int64_t tokens);
/// "512 B", "1.5 MiB".
std::string format_bytes(double bytes);
/// Two significant digits: "1.2e-07".
std::string format_error(double error);
/// Without decimals and without "-0": "12".
std::string format_percent(double percent);

/// "2.1%".
std::string format_spread(double percent);

/// UTF-8 characters of a text: the columns that it takes on a terminal.
int columns_of(std::string_view text);
/// The words of a text on lines of at most `width` columns, further ones indented; a word that is
/// wider has a line of its own. Spaces at the beginning of the text stay.
std::string with_hanging_indent(std::string_view text, int width, int indent);

/// The unit of a table's or figure's rates.
struct RateUnit {
  std::string_view name;  ///< "TFLOP/s" or "GFLOP/s"
  double per_tflops;      ///< multiply TFLOP/s by this
};
/// GFLOP/s if the largest rate is below 1 TFLOP/s.
RateUnit rate_unit(double largest_tflops);

/// The letter that stands in a plot for a cell without a number, as in published figures: X
/// unsupported, E out of memory, …; "" for ok.
std::string_view status_mark(StatusCode code);
/// The status in plain English: "out of memory".
std::string_view status_text(StatusCode code);
/// Whether the cell was run and did not end well; what cannot run has not failed.
bool is_failure(StatusCode code);
/// The statuses that have a mark.
std::span<const StatusCode> marked_statuses();

/// Axis names and values, in the order of the axis table.
using AxisTexts = std::vector<std::pair<std::string, std::string>>;
/// {"heads 8:2", "dim 128"}.
std::vector<std::string> axis_items(const AxisTexts& axes);
/// "heads 8:2 · dim 128".
std::string join_axes(const AxisTexts& axes, std::string_view separator);

/// A machine (Origin::machine) with cards that repeat as one: "…, 4 × NVIDIA H200 (driver 550.54)".
std::string short_machine(std::string_view machine);

/// The machine of the last record or, where records have several origins (origin.h), all of them:
/// "2 origins, all of AMD EPYC 9R14, 2 cores, 0.2.0: commit 1a2b (24 cells), commit 3c4d (1 cell)".
std::string describe_origins(std::span<const Record> records);
/// Adds their number, {"origins", "2"}, where there are several: every view shows `axes`.
void add_origins(AxisTexts& axes, std::span<const Record> records);

}  // namespace longca
