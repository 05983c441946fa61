#include "advise/documents.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "mask/own_file.h"
#include "mask/own_lengths.h"

namespace longca::advise {
namespace {

constexpr std::string_view kBlanks = " \t\r,";

/// The line without a leading 0, if it is one of cu_seqlens.
bool take_leading_zero(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(kBlanks), line.size()));
  const bool is_zero =
      line.starts_with('0') && line.size() > 1 && kBlanks.find(line[1]) != std::string_view::npos;
  if (is_zero) line.remove_prefix(1);
  return is_zero;
}

std::vector<std::int64_t> lengths_of_line(std::string_view line, const std::string& place) {
  const bool is_cumulative = take_leading_zero(line);
  std::vector<std::int64_t> numbers = parse_lengths(line, place);
  if (!is_cumulative) return numbers;
  const auto descent = std::ranges::adjacent_find(numbers, std::ranges::greater_equal{});
  if (descent != numbers.end()) {
    throw_input_error("{}: cu_seqlens ascend, and {} follows {}", place, *(descent + 1), *descent);
  }
  std::adjacent_difference(numbers.begin(), numbers.end(), numbers.begin());
  return numbers;
}

struct NumberedLine {
  std::size_t number;
  std::string_view text;
};

std::vector<NumberedLine> lines_of(std::string_view text) {
  std::vector<NumberedLine> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.find_first_not_of(kBlanks) != std::string_view::npos) lines.push_back({number, line});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

/// `place`: where the lengths were read, for errors.
Sequence known_sequence(const std::string& name, const std::filesystem::path& path,
                        const std::string& place, std::vector<std::int64_t> lengths) {
  const std::int64_t tokens = std::reduce(lengths.begin(), lengths.end(), std::int64_t{0});
  if (tokens > kMaxTokens) {
    throw_input_error("{}: documents of {} tokens together: at most {}", place, tokens, kMaxTokens);
  }
  add_own_lengths(name, OwnLengths{path, std::move(lengths), tokens});
  return {name, tokens};
}

}  // namespace

std::vector<Sequence> sample_documents(const std::filesystem::path& file, std::int64_t samples) {
  if (samples < 1) throw_input_error("--samples {} is not above 0", samples);
  const OwnFile own = read_own_file("documents", file, kMaxLengthsBytes);
  const std::string shown = file.string();
  if (own.bytes.starts_with("\x93NUMPY")) {
    return {known_sequence(own.name, own.path, shown, parse_lengths(own.bytes, shown))};
  }
  const std::vector<NumberedLine> lines = lines_of(own.bytes);
  if (lines.empty()) throw_input_error("{} has no sequence of documents", shown);
  const std::size_t count = std::min(lines.size(), static_cast<std::size_t>(samples));
  const std::string_view shown_name = without_hash(own.name);
  const std::string hash = own.name.substr(shown_name.size());
  std::vector<Sequence> sequences;
  for (std::size_t i = 0; i < count; ++i) {
    const NumberedLine& line = lines[i * lines.size() / count];
    const std::string place = fmt::format("{}:{}", shown, line.number);
    sequences.push_back(known_sequence(fmt::format("{}:{}{}", shown_name, line.number, hash),
                                       own.path, place, lengths_of_line(line.text, place)));
  }
  return sequences;
}

Advice combined_advice(std::span<const Advice> answers, Objective objective,
                       const CombineTimes& combine) {
  Advice combined{.problem = answers.front().problem, .sequences = answers.size()};
  std::int64_t tokens = 0;
  for (const Advice& answer : answers) tokens += answer.problem.tokens;
  combined.problem.tokens = tokens / static_cast<std::int64_t>(answers.size());
  std::map<std::string, std::pair<Choice, std::vector<Expected>>> sums;
  std::map<std::string, std::string> excluded, unknown;
  for (const Advice& answer : answers) {
    for (const Choice& choice : answer.choices) {
      const auto [place, is_new] =
          sums.try_emplace(name_of_choice(choice), choice, std::vector<Expected>{});
      auto& [sum, times] = place->second;
      if (!is_new) sum = step_of(sum.c, sum, choice);
      times.push_back(choice.time_ms);
    }
    for (const Refusal& refusal : answer.excluded) excluded.emplace(refusal.kernel, refusal.reason);
    for (const Refusal& refusal : answer.unknown) unknown.emplace(refusal.kernel, refusal.reason);
  }
  for (auto& [name, sum] : sums) {
    auto& [choice, times] = sum;
    if (times.size() != answers.size()) continue;
    choice.time_ms = combine(times);
    combined.choices.push_back(std::move(choice));
  }
  for (const auto& [kernel, reason] : excluded) combined.excluded.push_back({kernel, reason});
  for (const auto& [kernel, reason] : unknown) {
    if (!excluded.contains(kernel)) combined.unknown.push_back({kernel, reason});
  }
  rank_choices(combined.choices, objective);
  return combined;
}

Advice mean_advice(std::span<const Advice> answers, Objective objective) {
  return combined_advice(answers, objective, [](std::span<const Expected> times) {
    Expected sum;
    for (const Expected& time : times) {
      sum = {sum.value + time.value, sum.low + time.low, sum.high + time.high};
    }
    const auto count = static_cast<double>(times.size());
    return Expected{sum.value / count, sum.low / count, sum.high / count};
  });
}

}  // namespace longca::advise
