#pragma once

#include <span>
#include <string>
#include <string_view>

namespace longca {

/// The candidate with the smallest Damerau–Levenshtein distance to `word`, or "" if the distance
/// exceeds max(2, a third of the word's letters).
std::string nearest_name(std::string_view word, std::span<const std::string> candidates);

/// " (did you mean 'causal'?)" or "".
std::string suggestion(std::string_view word, std::span<const std::string> candidates);

}  // namespace longca
