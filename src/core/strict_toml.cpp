#include "core/strict_toml.h"

#include <algorithm>

#include "core/error.h"

namespace longca {
namespace {

constexpr int kMaxDepth = 16;  ///< suites and pages need four; the parser recurses

/// Passes over TOML, so far as to know what is a text or a comment and what is structure.
class DepthScanner {
 public:
  explicit DepthScanner(std::string_view text) : text_(text) {}

  /// The first line with more than kMaxDepth parts of a dotted key, or brackets; 0 if none has.
  int first_too_deep() {
    while (at_ < text_.size()) {
      step();
      if (parts_ > kMaxDepth || brackets_ > kMaxDepth) return line_;
    }
    return 0;
  }

 private:
  void step() {
    switch (const char c = text_[at_]) {
      case '"':
      case '\'':
        return skip_text(c);
      case '#':
        at_ = std::min(text_.find('\n', at_), text_.size());
        return;
      case '.':
        ++parts_;
        break;
      case '[':
      case '{':
        ++brackets_;
        parts_ = 0;
        break;
      case ']':
      case '}':
        brackets_ = std::max(brackets_ - 1, 0);
        parts_ = 0;
        break;
      case '\n':
        ++line_;
        [[fallthrough]];
      case '=':
      case ',':
        parts_ = 0;
        break;
      default:
        break;
    }
    ++at_;
  }

  /// A text: "…", '…', or either with three quotes over several lines.
  void skip_text(char quote) {
    const std::string three(3, quote);
    const bool is_long = text_.substr(at_).starts_with(three);
    at_ += is_long ? 3 : 1;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        if (!is_long) return;  // has no end: the parser says so
        ++line_;
      }
      if (is_long ? text_.substr(at_).starts_with(three) : c == quote) {
        at_ += is_long ? 3 : 1;
        // Up to two quotes of a long text's own may stand before the three that end it.
        for (int more = 0; is_long && more < 2 && text_.substr(at_).starts_with(quote); ++more)
          ++at_;
        return;
      }
      at_ += c == '\\' && quote == '"' ? 2 : 1;
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  int parts_ = 0;  ///< dots since the key began
  int brackets_ = 0;
};

}  // namespace

toml::table parse_strict_toml(std::string_view text, std::string_view path) {
  if (text.size() > kMaxTomlBytes) {
    throw_input_error("'{}' is too large: the maximum is {} bytes", path, kMaxTomlBytes);
  }
  if (const int line = DepthScanner(text).first_too_deep()) {
    throw_input_error("{}:{}: keys and values are nested deeper than {}", path, line, kMaxDepth);
  }
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error& error) {
    const auto& where = error.source().begin;
    throw_input_error("{}:{}:{}: {}", path, where.line, where.column, error.description());
  }
}

}  // namespace longca
