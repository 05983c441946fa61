#include "cost/platform.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <system_error>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/input_file.h"
#include "core/nearest.h"
#include "core/strict_toml.h"
#include "cost/embedded_platforms.h"
#include "cost/platform_fields.h"

namespace longca::cost {
namespace {

constexpr std::int64_t kMaxWhole = std::numeric_limits<std::int32_t>::max();

/// Takes the fields of a platform from the nodes of its page by their dotted keys.
class FieldReader {
 public:
  FieldReader(const toml::table& root, std::string_view path) : path_(path) {
    add_leaves(root, "");
    end_ = root.source();
  }

  Platform read() {
    Platform platform;
    platform.name = text("name");
    platform.description = text("description");
    read_kind(platform);
    if (leaves_.contains("card")) platform.card = text("card");
    visit_fields(platform, *this);
    make_optional_parts(platform);
    visit_optional_fields(platform, *this);
    read_spread(platform);
    check_unknown();
    return platform;
  }

  void section(const char* name, const char*, std::string& measured) {
    section_ = name;
    measured = text(section_ + ".measured");
  }

  void field(const char* key, const char*, double& value) {
    const std::string name = section_ + "." + key;
    const toml::node* node = find(name, "a number above 0");
    if (node == nullptr) return;
    const auto number = node->value<double>();
    if (!number || !node->is_number()) fail(node->source(), "'{}' is not a number", name);
    if (!std::isfinite(*number) || *number <= 0) {
      fail(node->source(), "'{}' is {}, not a finite number above 0", name, *number);
    }
    value = *number;
  }

  void field(const char* key, const char*, std::int64_t& value) {
    const std::string name = section_ + "." + key;
    const toml::node* node = find(name, "a whole number above 0");
    if (node == nullptr) return;
    const auto number = node->value_exact<std::int64_t>();
    if (!number) fail(node->source(), "'{}' is not a whole number", name);
    if (*number < 1 || *number > kMaxWhole) {
      fail(node->source(), "'{}' is {}, not between 1 and {}", name, *number, kMaxWhole);
    }
    value = *number;
  }

  template <typename... Args>
  [[noreturn]] void fail(const toml::source_region& where, fmt::format_string<Args...> format,
                         Args&&... args) const {
    throw_input_error("{}:{}:{}: {}", path_, where.begin.line, where.begin.column,
                      fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  void add_leaves(const toml::table& table, const std::string& prefix) {
    for (const auto& [key, node] : table) {
      const std::string name = prefix + std::string(key.str());
      const toml::table* inner = node.as_table();
      if (inner != nullptr && !inner->empty()) {
        add_leaves(*inner, name + ".");
      } else {
        leaves_[name] = &node;
      }
    }
  }

  void read_kind(Platform& platform) {
    known_.emplace_back("kind");
    const auto it = leaves_.find("kind");
    if (it == leaves_.end()) return;
    const toml::node* node = it->second;
    platform.kind = text("kind");
    if (platform.kind != "cuda" && platform.kind != "cpu") {
      fail(node->source(), "'kind' is '{}', not cuda or cpu", platform.kind);
    }
  }

  /// Creates the optional parts of which the page has keys.
  void make_optional_parts(Platform& platform) const {
    for (const auto& [name, node] : leaves_) {
      const std::size_t dot = name.find('.');
      const std::size_t last = name.rfind('.');
      const std::string part = name.substr(0, dot);
      if (part == "product") platform.product.emplace();
      if (part == "launch") platform.launch.emplace();
      if (dot == last || dot == std::string::npos) continue;
      const std::string owner = name.substr(dot + 1, last - dot - 1);
      const std::string_view key = std::string_view(name).substr(last + 1);
      if (part == "rates") make_pass(owner, platform.rates);
      if (part == "messages") make_size(key, platform.messages[owner]);
    }
  }

  /// `owner`: "fa3.forward".
  static void make_pass(const std::string& owner, std::map<std::string, OneKernelRates>& rates) {
    const std::size_t dot = owner.rfind('.');
    if (dot == std::string::npos) return;
    const std::string_view pass = std::string_view(owner).substr(dot + 1);
    if (pass == "forward") rates[owner.substr(0, dot)].forward.emplace();
    if (pass == "backward") rates[owner.substr(0, dot)].backward.emplace();
  }

  static void make_size(std::string_view key, MessageTimes& times) {
    std::int64_t bytes = 0;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), bytes);
    const bool whole = error == std::errc() && end == key.data() + key.size();
    if (whole && bytes > 0 && std::to_string(bytes) == key) times.seconds[bytes] = 0;
  }

  void read_spread(Platform& platform) {
    constexpr std::string_view kPrefix = "spread.";
    const std::vector<std::string> figures = known_;
    for (auto it = leaves_.lower_bound(std::string(kPrefix));
         it != leaves_.end() && it->first.starts_with(kPrefix); it = leaves_.erase(it)) {
      const std::string key = it->first.substr(kPrefix.size());
      const toml::node* node = it->second;
      if (std::ranges::find(figures, key) == figures.end()) {
        fail(node->source(), "'{}' is the spread of no figure{}", it->first,
             suggestion(key, figures));
      }
      const auto part = node->value<double>();
      if (!part || !node->is_number() || !std::isfinite(*part) || *part < 0) {
        fail(node->source(), "'{}' is not a finite number of at least 0", it->first);
      }
      platform.spread[key] = *part;
    }
  }

  /// The node of a key; null, and noted as missing, if the page lacks it.
  const toml::node* find(const std::string& name, std::string_view expected) {
    known_.push_back(name);
    const auto it = leaves_.find(name);
    if (it == leaves_.end()) {
      if (missing_.empty()) missing_ = fmt::format("'{}' is missing: {}", name, expected);
      return nullptr;
    }
    const toml::node* node = it->second;
    leaves_.erase(it);
    return node;
  }

  std::string text(const std::string& name) {
    const toml::node* node = find(name, "a text");
    if (node == nullptr) return "";
    const auto value = node->value_exact<std::string>();
    if (!value) fail(node->source(), "'{}' is no text: a text in quotation marks is meant", name);
    return *value;
  }

  /// An unknown key is reported before a missing one: it may be that one, misspelt.
  void check_unknown() const {
    if (!leaves_.empty()) {
      const auto& [name, node] = *leaves_.begin();
      fail(node->source(), "unknown key '{}'{}", name, suggestion(name, known_));
    }
    if (!missing_.empty()) fail(end_, "{}", missing_);
  }

  std::string path_;
  std::map<std::string, const toml::node*> leaves_;  ///< those not yet taken
  std::vector<std::string> known_;
  std::string missing_;  ///< a sentence about the first missing key
  std::string section_;
  toml::source_region end_;
};

}  // namespace

Platform parse_platform(std::string_view toml, std::string_view path) {
  return FieldReader(parse_strict_toml(toml, path), path).read();
}

std::vector<std::string> platform_names() {
  std::vector<std::string> names;
  for (const EmbeddedPage& page : embedded_platforms()) names.emplace_back(page.name);
  return names;
}

void throw_unknown_platform(const std::string& name, std::span<const std::string> names) {
  throw_input_error("unknown platform '{}'{}: it is one of {}, or a page, FILE.toml", name,
                    suggestion(name, names), fmt::join(names, ", "));
}

Platform load_platform(const std::string& name) {
  if (name.ends_with(".toml")) {
    return parse_platform(read_input_file("platform", name, kMaxTomlBytes), name);
  }
  for (const EmbeddedPage& page : embedded_platforms()) {
    if (page.name == name) return parse_platform(page.toml, name + ".toml");
  }
  throw_unknown_platform(name, platform_names());
}

const Platform& default_platform() {
  static const Platform platform = load_platform("h200");
  return platform;
}

const Platform& platform_of_card(std::string_view card) {
  static const std::vector<Platform> platforms = [] {
    std::vector<Platform> named;
    for (const std::string& name : platform_names()) {
      if (Platform platform = load_platform(name); !platform.card.empty()) {
        named.push_back(std::move(platform));
      }
    }
    return named;
  }();
  const auto found = std::ranges::find(platforms, card, &Platform::card);
  return found != platforms.end() ? *found : default_platform();
}

}  // namespace longca::cost
