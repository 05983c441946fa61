#include "core/parse.h"

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "core/error.h"

namespace longca {
namespace {

std::int64_t suffix_factor(char suffix) {
  switch (suffix) {
    case 'K':
    case 'k':
      return std::int64_t{1} << 10;
    case 'M':
    case 'm':
      return std::int64_t{1} << 20;
    default:
      return 1;
  }
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0;;) {
    const std::size_t end = text.find(separator, begin);
    parts.push_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

// "first:last:xF"
void append_range(std::vector<std::int64_t>& values, std::string_view what, std::string_view text,
                  const std::vector<std::string_view>& parts) {
  if (parts.size() != 3 || parts[2].size() < 2 || parts[2][0] != 'x') {
    throw_input_error("{} '{}' is no range; write FIRST:LAST:xFACTOR, e.g. 1K:64K:x2", what, text);
  }
  const auto part = [&](const char* name, std::string_view digits) {
    return parse_count(fmt::format("the {} of {} '{}':", name, what, text), digits);
  };
  const std::int64_t first = part("first value", parts[0]);
  const std::int64_t last = part("last value", parts[1]);
  const std::int64_t factor = part("factor", parts[2].substr(1));
  if (factor < 2)
    throw_input_error("{} '{}' has the factor {}; it must be at least 2", what, text, factor);
  if (first < 1 || last < first) {
    throw_input_error("{} '{}' must run upwards from at least 1", what, text);
  }
  for (std::int64_t value = first; value <= last;) {
    values.push_back(value);
    if (value > last / factor) break;
    value *= factor;
  }
}

}  // namespace

std::int64_t parse_count(std::string_view what, std::string_view text) {
  const std::int64_t factor = text.empty() ? 1 : suffix_factor(text.back());
  const std::string_view digits = factor == 1 ? text : text.substr(0, text.size() - 1);
  std::int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (error == std::errc::result_out_of_range ||
      (error == std::errc() && (value > std::numeric_limits<std::int64_t>::max() / factor ||
                                value < std::numeric_limits<std::int64_t>::min() / factor))) {
    using Limits = std::numeric_limits<std::int64_t>;
    if (text.starts_with('-')) {
      throw_input_error("{} {} is too small: the minimum of any number is {}", what, text,
                        Limits::min());
    }
    throw_input_error("{} {} is too large: the maximum of any number is {}", what, text,
                      Limits::max());
  }
  if (error != std::errc() || stop != end) {
    throw_input_error("{} '{}' is not a whole number (such as 4096, 4K or 1M)", what, text);
  }
  return value * factor;
}

std::vector<std::int64_t> parse_counts(std::string_view what, std::string_view text) {
  std::vector<std::int64_t> values;
  for (const std::string_view item : split(text, ',')) {
    const std::vector<std::string_view> parts = split(item, ':');
    if (parts.size() > 1) {
      append_range(values, what, item, parts);
    } else {
      values.push_back(parse_count(what, item));
    }
  }
  return values;
}

double parse_number(std::string_view what, std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) {
    throw_input_error("{} '{}' is not a number (such as 0.5)", what, text);
  }
  return value;
}

}  // namespace longca
