#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

namespace longca {

/// Texts, each once, in the order in which they were added.
class DistinctTexts {
 public:
  void add(std::string text);
  std::vector<std::string> take() { return std::move(texts_); }

 private:
  std::vector<std::string> texts_;
  std::unordered_set<std::string> seen_;
};

/// Parsers of axis values: from a comma list to canonical texts, each once, in the order given.
/// All throw InputError naming the axis, the value and its limit.
using ValueParser = std::function<std::vector<std::string>(std::string_view text)>;

/// Counts with suffixes and geometric ranges ("4K", "1K:64K:x2") inside [low, high].
ValueParser counts_between(const std::string& axis, std::int64_t low, std::int64_t high);
/// The same, of draws: one that is given twice is an error, since it would be measured once.
ValueParser draws_between(const std::string& axis, std::int64_t low, std::int64_t high);
/// Counts, or `word` by itself.
ValueParser counts_or_word(const std::string& axis, std::int64_t low, std::int64_t high,
                           const std::string& word);
/// Finite numbers inside (low, high].
ValueParser numbers_above(const std::string& axis, double low, double high);
/// Numbers inside [low, high], or 0.
ValueParser numbers_or_zero(const std::string& axis, double low, double high);
/// "HQ:HK", or "H" for as many query as KV heads; HK must divide HQ.
ValueParser head_pairs(const std::string& axis, std::int64_t high);
/// Counts and geometric ranges, or "DQK:DV" with DV ≤ DQK; "D:D" is "D".
ValueParser dim_pairs(const std::string& axis, std::int64_t high);
/// A name of another program's, and ours, which the error about it suggests.
struct Alias {
  std::string_view theirs;
  std::string_view ours;
};

/// Names out of a closed set; "all" is every one. Unknown ones suggest the nearest. `aliases` must
/// outlive the parser.
ValueParser names_of(std::string axis, std::vector<std::string> (*names)(),
                     std::span<const Alias> aliases = {});
/// The same, or `word` by itself, which "all" does not stand for.
ValueParser names_or_word(std::string axis, std::vector<std::string> (*names)(), std::string word,
                          std::span<const Alias> aliases = {});

/// The same, or a file (own_file.h: a '/' or a '.' is in it), for which `read` gives the canonical
/// value; "all" stands for no file. A file with commas in its name is named alone.
ValueParser names_or_files(std::string axis, std::vector<std::string> (*names)(),
                           std::string (*read)(const std::filesystem::path& file));

/// The items of a comma list, without the spaces around them. Throws InputError for an empty one.
std::vector<std::string_view> split_list(std::string_view axis, std::string_view text);

/// The two numbers of a canonical "A:B", or twice that of "A".
std::pair<int, int> split_pair(const std::string& value);

}  // namespace longca
