#include "core/strict_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/error.h"

namespace longca {
namespace {

using nlohmann::json;

constexpr int kNumberTooLarge = 406;  // of nlohmann's exceptions

/// "column 5" of a text of one line, else "line 3, column 5"; `byte` counts from 1.
std::string place_of(std::string_view text, std::size_t byte) {
  const std::string_view before = text.substr(0, std::min(byte, text.size() + 1) - (byte > 0));
  const auto line = std::ranges::count(before, '\n');
  if (line == 0) return fmt::format("column {}", byte);
  return fmt::format("line {}, column {}", line + 1, before.size() - before.rfind('\n'));
}

/// Builds a value of the parser's events, and refuses what the library's own builder would accept.
class StrictBuilder {
 public:
  StrictBuilder(std::string_view text, int max_depth)
      : text_(text), max_depth_(static_cast<std::size_t>(max_depth)) {}

  json take() { return std::move(root_); }

  bool null() { return add(nullptr); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(json::number_integer_t value) { return add(value); }
  bool number_unsigned(json::number_unsigned_t value) { return add(value); }
  bool number_float(json::number_float_t value, const std::string&) { return add(value); }
  bool string(const std::string& value) { return add(value); }
  bool binary(json::binary_t&) { return false; }  // no text has any

  bool start_object(std::size_t) { return open(json::object()); }
  bool start_array(std::size_t) { return open(json::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(const std::string& key) {
    check_depth();
    auto& object = open_.back()->get_ref<json::object_t&>();
    const std::size_t keys = object.size();
    // Records are written with their keys in order: most belong at the end.
    member_ = &object.try_emplace(object.end(), key)->second;
    if (object.size() == keys) throw_input_error("the key {} is there twice", json(key).dump());
    return true;
  }

  /// `byte` is the last that was read, of `token`.
  [[noreturn]] bool parse_error(std::size_t byte, const std::string& token,
                                const json::exception& error) const {
    if (error.id == kNumberTooLarge) {
      throw_input_error("the number at {} is too large: the maximum is {:.5g}",
                        place_of(text_, byte - std::min(byte, token.size()) + 1),
                        std::numeric_limits<double>::max());
    }
    throw_input_error("no valid JSON at {}", place_of(text_, byte));
  }

 private:
  void check_depth() const {
    if (open_.size() > max_depth_)
      throw_input_error("values are nested deeper than {}", max_depth_);
  }

  bool add(json value) {
    place(std::move(value));
    return true;
  }

  bool open(json container) {
    open_.push_back(&place(std::move(container)));
    return true;
  }

  bool close() {
    open_.pop_back();
    return true;
  }

  json& place(json value) {
    check_depth();
    if (open_.empty()) return root_ = std::move(value);
    json& parent = *open_.back();
    if (parent.is_object()) return *member_ = std::move(value);
    return parent.get_ref<json::array_t&>().emplace_back(std::move(value));
  }

  std::string_view text_;
  std::size_t max_depth_;
  json root_;
  std::vector<json*> open_;  ///< objects and arrays whose end has not come; each holds the next
  json* member_ = nullptr;   ///< of the innermost object, the value of its last key
};

/// Finds out whether an error is the end of the text, inside a value.
struct CutFinder {
  std::size_t size;
  std::size_t depth = 0;
  bool is_cut = false;

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(json::number_integer_t) { return true; }
  bool number_unsigned(json::number_unsigned_t) { return true; }
  bool number_float(json::number_float_t, const std::string&) { return true; }
  bool string(const std::string&) { return true; }
  bool binary(json::binary_t&) { return false; }
  bool key(const std::string&) { return true; }
  bool start_object(std::size_t) { return ++depth > 0; }
  bool start_array(std::size_t) { return ++depth > 0; }
  bool end_object() { return depth-- > 0; }
  bool end_array() { return depth-- > 0; }

  /// `byte` counts from 1, and the end is one more than all.
  bool parse_error(std::size_t byte, const std::string&, const json::exception&) {
    is_cut = depth > 0 && byte > size;
    return false;
  }
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

}  // namespace

json parse_strict_json(std::string_view text, int max_depth) {
  StrictBuilder builder(text, max_depth);
  json::sax_parse(TextIterator{text.data()}, TextIterator{text.data() + text.size()}, &builder);
  return builder.take();
}

bool is_cut_json(std::string_view text) {
  CutFinder finder{text.size()};
  json::sax_parse(TextIterator{text.data()}, TextIterator{text.data() + text.size()}, &finder);
  return finder.is_cut;
}

}  // namespace longca
