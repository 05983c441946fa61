#pragma once

#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/table.h"
#include "report/view.h"

namespace longca {

constexpr int kGap = 2;           ///< spaces between columns
constexpr int kMemoryWidth = 8;   ///< "1023 MiB"
constexpr int kLegendIndent = 8;  ///< where a legend explains what stands before

/// Widens a column to the text.
void widen(int& column, std::string_view text);

enum class Ink { plain, bold, dim, green, yellow, red };
/// The ink of a status.
Ink ink_of(StatusCode status);

/// A column that a narrow terminal has no room for.
struct OptionalColumn {
  bool* shown;
  const char* name;
};
/// Clears the columns that are shown, the first one first, until the table `fits`; returns the
/// names of those it cleared.
std::vector<std::string> leave_out(std::initializer_list<OptionalColumn> columns,
                                   const std::function<bool()>& fits);

/// The width of the view's column of times, with a space before them and their marks:
/// " 12.3±0.4%~".
/// Without `intervals`: " 12.3~".
int time_width(const View& view, bool intervals);

/// What a legend says of rows that show no memory though they have some, that of another pass; ""
/// if there are none.
std::string_view memory_gaps(const View& view);

/// What all tables on a terminal share: colours, headings, marked figures, reasons.
class TerminalText {
 public:
  TerminalText(std::ostream& out, const TableOptions& options) : out_(out), options_(options) {}

  std::string paint(Ink ink, const std::string& text) const;
  /// Prints a line without the spaces at its end.
  void line(Ink ink, std::string text);
  /// Prints the items on as many lines as they need, " · " between them; one that is wider than a
  /// line is broken between its words.
  void wrapped(const std::vector<std::string>& items);
  /// Prints where the records are from (describe_origins), if that is known.
  void origins(std::span<const Record> records);
  /// Prints how each kernel (over ranks: scheme) does over all problems, if there are several of
  /// both.
  void summary(const View& view);
  /// Prints which cells failed (wrong, crash, timeout, oom) and why, at most a dozen reasons.
  void failures(const View& view);
  /// The same of cells that cannot run: unsupported, unavailable.
  void refusals(const View& view);

  /// The figure right-aligned in the width, "123.4*" in green if it is the best, else "123.4 ".
  std::string figure(const std::string& text, int width, bool is_best);
  /// time_ms right-aligned in the width and its mark (interval_mark); with `intervals` its own over
  /// several rounds, or where that is wider than was asked for.
  std::string time(const Record& record, int width, bool intervals);
  /// Prints a sentence, of the legend or of what stands above a table, on as many lines as the
  /// width needs, further ones indented.
  void sentence(std::string_view text, int indent = kLegendIndent, Ink ink = Ink::plain);
  /// Explains the marks that were printed, a line each; `*` marks the fastest of its `group`, "mask
  /// and length".
  void marks(std::string_view group);
  /// Says which columns the width has no room for, if any.
  void left_out(const std::vector<std::string>& columns);
  bool has_best() const { return has_best_; }

 private:
  void reasons(std::string_view title, const std::vector<Reason>& reasons);

  std::ostream& out_;
  TableOptions options_;
  bool has_best_ = false;
  bool has_unsettled_ = false;
  bool has_no_interval_ = false;
  bool has_rounds_ = false;       ///< an interval over rounds was printed
  bool has_repetitions_ = false;  ///< one over the repetitions of a single round
};

}  // namespace longca
