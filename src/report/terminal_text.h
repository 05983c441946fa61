#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "report/table.h"
#include "report/view.h"

namespace longca {

enum class Ink { plain, bold, dim, green, yellow, red };
/// What a status is printed in.
Ink ink_of(StatusCode status);

/// What the tables on the screen have in common: colours, headings, reasons.
class TerminalText {
 public:
  TerminalText(std::ostream& out, const TableOptions& options) : out_(out), options_(options) {}

  std::string paint(Ink ink, const std::string& text) const;
  /// Without the spaces at its end.
  void line(Ink ink, std::string text);
  /// Items on as many lines as they need, " · " between them.
  void wrapped(const std::vector<std::string>& items);
  /// "heads 8:2 · dim 128", likewise.
  void wrapped(const AxisTexts& axes);
  /// The view's reasons, the first dozen.
  void reasons(const View& view);

 private:
  std::ostream& out_;
  TableOptions options_;
};

}  // namespace longca
