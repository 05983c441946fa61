#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>
#include <utility>

#include "bench/suite/axis_values.h"
#include "bench/suite/suite.h"
#include "core/error.h"
#include "core/nearest.h"
#include "core/strict_toml.h"

namespace longca {
namespace {

constexpr std::size_t kMaxExceptions = 100;  ///< each is tried on every cell

/// A value as TOML has it: -1, "text"; of tables and arrays that they are one.
std::string written(const toml::node& node) {
  if (node.is_table()) return "a table";
  if (node.is_array()) return "an array";
  std::ostringstream text;
  node.visit([&](const auto& value) { text << value; });
  return text.str();
}

/// Reads the nodes of one file; every error gives its line and column.
class SuiteReader {
 public:
  explicit SuiteReader(const std::filesystem::path& path) : path_(path) {}

  Suite read(const toml::table& root) const {
    check_keys(root, {"description", "only_what_runs", "axes", "exceptions", "run"});
    Suite suite;
    suite.name = path_.stem();
    suite.path = path_;
    if (const auto* node = root.get("description")) suite.description = text(*node, "description");
    if (const auto* node = root.get("only_what_runs")) {
      suite.only_what_runs = truth(*node, "only_what_runs");
    }
    if (const auto* node = root.get("axes")) suite.axes = axes(*node, "axes");
    if (const auto* node = root.get("run")) suite.limits = limits(table(*node, "run"));
    if (const auto* node = root.get("exceptions")) suite.exceptions = exceptions(*node);
    return suite;
  }

 private:
  template <typename... Args>
  [[noreturn]] void fail(const toml::node& node, fmt::format_string<Args...> format,
                         Args&&... args) const {
    const auto& where = node.source().begin;
    throw_input_error("{}:{}:{}: {}", path_.string(), where.line, where.column,
                      fmt::format(format, std::forward<Args>(args)...));
  }

  [[noreturn]] void fail_type(const toml::node& node, std::string_view name,
                              std::string_view wanted) const {
    fail(node, "'{}' is {}: {} is meant", name, written(node), wanted);
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
    if (!node.is_table()) fail_type(node, name, "a table");
    return *node.as_table();
  }

  std::string text(const toml::node& node, std::string_view name) const {
    const auto value = node.value_exact<std::string>();
    if (!value) fail_type(node, name, "a text");
    return *value;
  }

  bool truth(const toml::node& node, std::string_view name) const {
    const auto value = node.value_exact<bool>();
    if (!value) fail_type(node, name, "true or false");
    return *value;
  }

  /// A number or text as it would stand on the command line.
  std::string axis_text(const toml::node& node, std::string_view axis) const {
    if (const auto value = node.value_exact<std::string>()) return *value;
    if (const auto value = node.value_exact<std::int64_t>()) return std::to_string(*value);
    if (const auto value = node.value_exact<double>()) return fmt::format("{}", *value);
    fail(node, "axis '{}' is {}: it takes numbers, texts, or arrays of them", axis, written(node));
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
      if (!value || !(*value >= 0) || *value > RunLimits::kMaxSeconds) {
        fail(*node, "'{}' is {}: a number from 0 to {} is meant", name, written(*node),
             RunLimits::kMaxSeconds);
      }
      if (*value == 0 && target == &limits.case_limit_s) {
        fail(*node, "'{}' is 0: no cell could end by then", name);
      }
      *target = *value;
    }
    check_keys(run, known);
    if (const auto* node = run.get("memory_limit_mib")) {
      const auto value = node->value_exact<std::int64_t>();
      if (!value || *value < 0 || *value > RunLimits::kMaxMemoryMib) {
        fail(*node, "'memory_limit_mib' is {}: a whole number from 0 to {} is meant",
             written(*node), RunLimits::kMaxMemoryMib);
      }
      limits.memory_limit_mib = *value;
    }
    return limits;
  }

  const std::filesystem::path& path_;
};

}  // namespace

Suite parse_suite(std::string_view text, const std::filesystem::path& path) {
  return SuiteReader(path).read(parse_strict_toml(text, path.string()));
}

}  // namespace longca
