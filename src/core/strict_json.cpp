#include "core/strict_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"

namespace longca {
namespace {

using nlohmann::json;

/// Refuses, while a text is parsed, what the parser itself would accept.
class ParserGuard {
 public:
  explicit ParserGuard(int max_depth) : max_depth_(max_depth) {}

  bool operator()(int depth, json::parse_event_t event, const json& value) {
    if (depth > max_depth_) throw_input_error("values are nested deeper than {}", max_depth_);
    if (event == json::parse_event_t::object_start) keys_.emplace_back();
    if (event == json::parse_event_t::object_end) keys_.pop_back();
    if (event == json::parse_event_t::key &&
        !keys_.back().insert(value.get<std::string>()).second) {
      throw_input_error("the key {} is there twice", value.dump());
    }
    return true;
  }

 private:
  int max_depth_;
  std::vector<std::set<std::string>> keys_;  ///< of every open object
};

/// A `const char*` of a type of this file's own. The parser's templates are then compiled here,
/// with this file's optimization: of those for plain pointers the linker takes any file's.
struct TextIterator {
  using iterator_category = std::forward_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at = nullptr;

  reference operator*() const { return *at; }
  TextIterator& operator++() {
    ++at;
    return *this;
  }
  TextIterator operator++(int) { return {at++}; }
  bool operator==(const TextIterator&) const = default;
};

/// "column 5" of a text of one line, else "line 3, column 5"; `byte` counts from 1.
std::string place_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size() + 1) - (byte > 0));
  const auto line = std::ranges::count(before, '\n');
  if (line == 0) return fmt::format("column {}", byte);
  return fmt::format("line {}, column {}", line + 1, before.size() - before.rfind('\n'));
}

}  // namespace

json parse_strict_json(std::string_view text, int max_depth) {
  ParserGuard guard(max_depth);
  try {
    return json::parse(TextIterator{text.data()}, TextIterator{text.data() + text.size()},
                       std::ref(guard));
  } catch (const json::parse_error& error) {
    throw_input_error("no valid JSON at {}", place_of(text, error.byte));
  } catch (const json::out_of_range&) {
    throw InputError("a number is too large");
  }
}

}  // namespace longca
