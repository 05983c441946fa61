#include "bench/record/rfc3339.h"

#include <algorithm>
#include <chrono>

namespace longca {
namespace {

bool is_digit(char letter) {
  return letter >= '0' && letter <= '9';
}

/// Whether the text has a digit where `shape` has a 0, and else its letters, in either case.
bool has_shape(std::string_view text, std::string_view shape) {
  return std::ranges::equal(text, shape, [](char letter, char wanted) {
    return wanted == '0' ? is_digit(letter) : letter == wanted || (wanted == 'T' && letter == 't');
  });
}

/// The number that these digits of the text are.
unsigned number_at(std::string_view text, std::size_t begin, std::size_t digits) {
  unsigned number = 0;
  for (const char digit : text.substr(begin, digits)) {
    number = number * 10 + static_cast<unsigned>(digit - '0');
  }
  return number;
}

/// YYYY-MM-DD at the beginning of the text.
bool is_date(std::string_view text) {
  const std::chrono::year year(static_cast<int>(number_at(text, 0, 4)));
  const std::chrono::month month(number_at(text, 5, 2));
  const std::chrono::day day(number_at(text, 8, 2));
  return std::chrono::year_month_day(year, month, day).ok();
}

bool is_offset(std::string_view text) {
  if (text == "Z" || text == "z") return true;
  const bool has_sign = text.starts_with('+') || text.starts_with('-');
  return has_sign && has_shape(text.substr(1), "00:00") && number_at(text, 1, 2) < 24 &&
         number_at(text, 4, 2) < 60;
}

}  // namespace

bool is_rfc3339(std::string_view text) {
  constexpr std::string_view kToSeconds = "0000-00-00T00:00:00";
  if (!has_shape(text.substr(0, kToSeconds.size()), kToSeconds) || !is_date(text)) return false;
  constexpr unsigned kLeapSecond = 60;
  if (number_at(text, 11, 2) >= 24 || number_at(text, 14, 2) >= 60 ||
      number_at(text, 17, 2) > kLeapSecond) {
    return false;
  }
  text.remove_prefix(kToSeconds.size());
  if (text.starts_with('.')) {
    const auto end = std::find_if_not(text.begin() + 1, text.end(), is_digit);
    const auto digits = end - text.begin() - 1;
    if (digits == 0) return false;
    text.remove_prefix(static_cast<std::size_t>(digits + 1));
  }
  return is_offset(text);
}

}  // namespace longca
