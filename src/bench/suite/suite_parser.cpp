#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "bench/suite/axis_values.h"
#include "bench/suite/suite.h"
#include "core/error.h"
#include "core/nearest.h"

namespace longca {
namespace {

constexpr std::size_t kMaxExceptions = 100;  ///< each is tried on every cell
constexpr int kMaxDepth = 16;                ///< a suite needs four; the parser recurses

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

/// Reads the nodes of one file; every error gives its line and column.
class SuiteReader {
 public:
  explicit SuiteReader(const std::filesystem::path& path) : path_(path) {}

  Suite read(const toml::table& root) const {
    check_keys(root, {"description", "axes", "exceptions", "run"});
    Suite suite;
    suite.name = path_.stem();
    suite.path = path_;
    if (const auto* node = root.get("description")) suite.description = text(*node, "description");
    if (const auto* node = root.get("axes")) suite.axes = axes(*node, "axes");
    if (const auto* node = root.get("run")) suite.limits = limits(table(*node, "run"));
    if (const auto* node = root.get("exceptions")) suite.exceptions = exceptions(*node);
    return suite;
  }

  [[noreturn]] void fail(const toml::source_region& where, std::string_view sentence) const {
    throw_input_error("{}:{}:{}: {}", path_.string(), where.begin.line, where.begin.column,
                      sentence);
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(const toml::node& node, fmt::format_string<Args...> format,
                         Args&&... args) const {
    fail(node.source(), fmt::format(format, std::forward<Args>(args)...));
  }

  void check_keys(const toml::table& table, std::vector<std::string> known) const {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (std::ranges::find(known, name) == known.end()) {
        fail(node, "unknown key '{}'{}", name, suggestion(name, known));
      }
    }
  }

  const toml::table& table(const toml::node& node, std::string_view name) const {
    if (!node.is_table()) fail(node, "'{}' is not a table", name);
    return *node.as_table();
  }

  std::string text(const toml::node& node, std::string_view name) const {
    const auto value = node.value_exact<std::string>();
    if (!value) fail(node, "'{}' is not a text", name);
    return *value;
  }

  /// A number or text as it would stand on the command line.
  std::string axis_text(const toml::node& node, std::string_view axis) const {
    if (const auto value = node.value_exact<std::string>()) return *value;
    if (const auto value = node.value_exact<std::int64_t>()) return std::to_string(*value);
    if (const auto value = node.value_exact<double>()) return fmt::format("{}", *value);
    fail(node, "axis '{}' takes numbers, texts, or arrays of them", axis);
  }

  void add_values(const Axis& axis, const toml::node& node, DistinctTexts& values) const {
    if (const toml::array* array = node.as_array()) {
      for (const toml::node& item : *array) add_values(axis, item, values);
      return;
    }
    const std::string text = axis_text(node, axis.name);
    try {
      for (std::string& value : axis.parse(text)) values.add(std::move(value));
    } catch (const InputError& error) {
      fail(node, "{}", error.what());
    }
  }

  AxisValues axes(const toml::node& node, std::string_view name) const {
    AxisValues result;
    for (const auto& [key, value] : table(node, name)) {
      const Axis* axis = nullptr;
      try {
        axis = &find_axis(key.str());
      } catch (const InputError& error) {
        fail(value, "{}", error.what());
      }
      DistinctTexts texts;
      add_values(*axis, value, texts);
      std::vector<std::string>& values = result[axis->name] = texts.take();
      if (values.empty()) fail(value, "axis '{}' has no value: the product is empty", axis->name);
    }
    return result;
  }

  std::vector<SuiteException> exceptions(const toml::node& node) const {
    const toml::array* array = node.as_array();
    if (array == nullptr) fail(node, "'exceptions' is not written as [[exceptions]]");
    if (array->size() > kMaxExceptions) {
      fail(node, "{} exceptions are too many: the maximum is {}", array->size(), kMaxExceptions);
    }
    std::vector<SuiteException> result;
    for (const toml::node& item : *array) result.push_back(exception(table(item, "exceptions")));
    return result;
  }

  SuiteException exception(const toml::table& item) const {
    check_keys(item, {"when", "skip", "set"});
    SuiteException result;
    const toml::node* when = item.get("when");
    if (when == nullptr) fail(item, "an exception needs 'when'");
    result.when = axes(*when, "when");
    if (const auto* node = item.get("skip")) result.skip = text(*node, "skip");
    if (const auto* node = item.get("set")) result.set = axes(*node, "set");
    if (result.skip.empty() == result.set.empty()) {
      fail(item, "an exception needs either 'skip', with a reason, or 'set'");
    }
    for (const auto& [name, values] : result.set) {
      if (values.size() != 1)
        fail(item, "'set' needs one value of '{}', not {}", name, values.size());
    }
    return result;
  }

  RunLimits limits(const toml::table& run) const {
    RunLimits limits;
    const std::pair<const char*, double*> numbers[] = {{"time_limit_s", &limits.time_limit_s},
                                                       {"sample_budget_s", &limits.sample_budget_s},
                                                       {"case_limit_s", &limits.case_limit_s},
                                                       {"verify_budget_s", &limits.verify_budget_s},
                                                       {"cool_down_ms", &limits.cool_down_ms}};
    std::vector<std::string> known{"memory_limit_mib"};
    for (const auto& [name, target] : numbers) {
      known.emplace_back(name);
      const toml::node* node = run.get(name);
      if (node == nullptr) continue;
      const auto value = node->value<double>();
      if (!value || !std::isfinite(*value) || *value < 0) {
        fail(*node, "'{}' is not a number of 0 or more", name);
      }
      *target = *value;
    }
    check_keys(run, known);
    if (const auto* node = run.get("memory_limit_mib")) {
      const auto value = node->value_exact<std::int64_t>();
      if (!value || *value < 0)
        fail(*node, "'memory_limit_mib' is not a whole number of 0 or more");
      limits.memory_limit_mib = *value;
    }
    return limits;
  }

  const std::filesystem::path& path_;
};

}  // namespace

Suite parse_suite(std::string_view text, const std::filesystem::path& path) {
  if (text.size() > kMaxSuiteBytes) {
    throw_input_error("suite '{}' is too large: it has more than {} bytes", path.string(),
                      kMaxSuiteBytes);
  }
  if (const int line = DepthScanner(text).first_too_deep()) {
    throw_input_error("{}:{}: keys and values are nested deeper than {}", path.string(), line,
                      kMaxDepth);
  }
  const SuiteReader reader(path);
  try {
    return reader.read(toml::parse(text, path.string()));
  } catch (const toml::parse_error& error) {
    reader.fail(error.source(), error.description());
  }
}

}  // namespace longca
