#include "bench/suite/axis_values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/nearest.h"
#include "core/parse.h"
#include "mask/own_file.h"

namespace longca {
namespace {

std::int64_t check_range(std::string_view axis, std::int64_t value, std::int64_t low,
                         std::int64_t high) {
  if (value < low) throw_input_error("{} {} is too small: the minimum is {}", axis, value, low);
  if (value > high) throw_input_error("{} {} is too large: the maximum is {}", axis, value, high);
  return value;
}

void add_counts(DistinctTexts& values, std::string_view axis, std::string_view item,
                std::int64_t low, std::int64_t high) {
  for (const std::int64_t count : parse_counts(axis, item)) {
    values.add(std::to_string(check_range(axis, count, low, high)));
  }
}

/// "A:B", or "A" for "A:A".
std::pair<std::int64_t, std::int64_t> parse_pair(std::string_view axis, std::string_view item,
                                                 std::int64_t high) {
  const std::size_t colon = item.find(':');
  if (item.starts_with(':') || item.ends_with(':')) {
    throw_input_error("{} '{}' has no number on one side of the colon", axis, item);
  }
  if (std::ranges::count(item, ':') > 1) {
    throw_input_error("{} '{}' has more than two numbers", axis, item);
  }
  const std::string_view second = colon == std::string_view::npos ? item : item.substr(colon + 1);
  const std::int64_t first = check_range(axis, parse_count(axis, item.substr(0, colon)), 1, high);
  return {first, check_range(axis, parse_count(axis, second), 1, high)};
}

/// The canonical value of an item that is none of an axis's names; nothing if it has none.
using OtherValue = std::function<std::optional<std::string>(std::string_view item)>;

/// " (did you mean 'bfloat16'?)" or "".
std::string suggestion_of(std::string_view item, const std::vector<std::string>& known,
                          std::span<const Alias> aliases) {
  const auto alias = std::ranges::find(aliases, item, &Alias::theirs);
  return alias == aliases.end() ? suggestion(item, known)
                                : fmt::format(" (did you mean '{}'?)", alias->ours);
}

ValueParser names_or(std::string axis, std::vector<std::string> (*names)(), OtherValue other,
                     std::span<const Alias> aliases = {}) {
  return [axis = std::move(axis), names, other = std::move(other), aliases](std::string_view text) {
    const std::vector<std::string> known = names();
    DistinctTexts values;
    for (const auto item : split_list(axis, text)) {
      if (item == "all") {
        for (const std::string& name : known) values.add(name);
      } else if (std::ranges::find(known, item) != known.end()) {
        values.add(std::string(item));
      } else if (auto value = other(item)) {
        values.add(std::move(*value));
      } else {
        const std::string near = suggestion_of(item, known, aliases);
        throw_input_error(
            "unknown {} '{}'{}", axis, item,
            near.empty() ? fmt::format(" (known: {})", fmt::join(known, ", ")) : near);
      }
    }
    return values.take();
  };
}

}  // namespace

std::vector<std::string_view> split_list(std::string_view axis, std::string_view text) {
  std::vector<std::string_view> items;
  while (true) {
    const std::size_t comma = text.find(',');
    std::string_view item = text.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    if (item.empty()) throw_input_error("{}: a value of the list is empty", axis);
    items.push_back(item);
    if (comma == std::string_view::npos) return items;
    text.remove_prefix(comma + 1);
  }
}

void DistinctTexts::add(std::string text) {
  if (seen_.insert(text).second) texts_.push_back(std::move(text));
}

ValueParser counts_between(const std::string& axis, std::int64_t low, std::int64_t high) {
  return [=](std::string_view text) {
    DistinctTexts values;
    for (const auto item : split_list(axis, text)) add_counts(values, axis, item, low, high);
    return values.take();
  };
}

ValueParser draws_between(const std::string& axis, std::int64_t low, std::int64_t high) {
  return [=](std::string_view text) {
    std::vector<std::string> values;
    for (const auto item : split_list(axis, text)) {
      for (const std::int64_t count : parse_counts(axis, item)) {
        std::string value = std::to_string(check_range(axis, count, low, high));
        if (std::ranges::find(values, value) != values.end()) {
          throw_input_error("{} {} is given twice: each draw counts once", axis, value);
        }
        values.push_back(std::move(value));
      }
    }
    return values;
  };
}

ValueParser counts_or_word(const std::string& axis, std::int64_t low, std::int64_t high,
                           const std::string& word) {
  return [=](std::string_view text) {
    DistinctTexts values;
    for (const auto item : split_list(axis, text)) {
      if (item == word) {
        values.add(word);
        continue;
      }
      const bool is_word = !item.empty() && std::isalpha(static_cast<unsigned char>(item[0])) != 0;
      if (is_word) {
        throw_input_error("unknown {} '{}': a whole number (such as 4096 or 4K) or '{}'{}", axis,
                          item, word, suggestion(item, std::array{word}));
      }
      add_counts(values, axis, item, low, high);
    }
    return values.take();
  };
}

ValueParser numbers_above(const std::string& axis, double low, double high) {
  return [=](std::string_view text) {
    DistinctTexts values;
    for (const auto item : split_list(axis, text)) {
      const double number = parse_number(axis, item);
      if (!(number > low && number <= high)) {
        throw_input_error("{} {} is not above {} and at most {}", axis, item, low, high);
      }
      values.add(fmt::format("{}", number));
    }
    return values.take();
  };
}

ValueParser numbers_or_zero(const std::string& axis, double low, double high) {
  return [=](std::string_view text) {
    DistinctTexts values;
    for (const auto item : split_list(axis, text)) {
      const double number = parse_number(axis, item);
      if (number != 0 && !(number >= low && number <= high)) {
        throw_input_error("{} {} is neither 0 nor from {} to {}", axis, item, low, high);
      }
      values.add(number == 0 ? "0" : fmt::format("{}", number));
    }
    return values.take();
  };
}

ValueParser head_pairs(const std::string& axis, std::int64_t high) {
  return [=](std::string_view text) {
    DistinctTexts values;
    for (const auto item : split_list(axis, text)) {
      const auto [heads_q, heads_k] = parse_pair(axis, item, high);
      if (heads_q % heads_k != 0) {
        throw_input_error("{} {}: {} query heads are no multiple of {} KV heads", axis, item,
                          heads_q, heads_k);
      }
      values.add(fmt::format("{}:{}", heads_q, heads_k));
    }
    return values.take();
  };
}

ValueParser dim_pairs(const std::string& axis, std::int64_t high) {
  return [=](std::string_view text) {
    DistinctTexts values;
    for (const auto item : split_list(axis, text)) {
      if (std::ranges::count(item, ':') != 1) {  // a count, or a geometric range
        add_counts(values, axis, item, 1, high);
        continue;
      }
      const auto [of_keys, of_values] = parse_pair(axis, item, high);
      if (of_values > of_keys) {
        throw_input_error("{} {}: v of dimension {} is larger than q and k of {}", axis, item,
                          of_values, of_keys);
      }
      values.add(of_values == of_keys ? std::to_string(of_keys)
                                      : fmt::format("{}:{}", of_keys, of_values));
    }
    return values.take();
  };
}

ValueParser names_of(std::string axis, std::vector<std::string> (*names)(),
                     std::span<const Alias> aliases) {
  return names_or(
      std::move(axis), names, [](std::string_view) { return std::nullopt; }, aliases);
}

ValueParser names_or_word(std::string axis, std::vector<std::string> (*names)(), std::string word,
                          std::span<const Alias> aliases) {
  return names_or(
      std::move(axis), names,
      [word = std::move(word)](std::string_view item) {
        return item == word ? std::optional(word) : std::nullopt;
      },
      aliases);
}

ValueParser names_or_files(std::string axis, std::vector<std::string> (*names)(),
                           std::string (*read)(const std::filesystem::path& file)) {
  ValueParser of_list = names_or(std::move(axis), names, [read](std::string_view item) {
    return means_file(item) ? std::optional(read(item)) : std::nullopt;
  });
  return [of_list = std::move(of_list), read](std::string_view text) {
    std::error_code unreadable;
    const bool is_one_file = text.find(',') != text.npos && means_file(text) &&
                             std::filesystem::is_regular_file(text, unreadable);
    return is_one_file ? std::vector{read(text)} : of_list(text);
  };
}

std::pair<int, int> split_pair(const std::string& value) {
  const std::size_t colon = value.find(':');
  const int first = std::stoi(value.substr(0, colon));
  return {first, colon == std::string::npos ? first : std::stoi(value.substr(colon + 1))};
}

}  // namespace longca
