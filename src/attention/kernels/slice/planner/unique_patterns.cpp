#include "attention/kernels/slice/planner/unique_patterns.h"

#include <algorithm>
#include <cstddef>

#include "attention/kernels/slice/planner/tile_lists.h"

namespace longca::slice {

std::vector<std::int32_t> UniquePatterns::add(std::span<const std::uint64_t> patterns) {
  std::vector<std::int32_t> places;
  places.reserve(patterns.size() / kTileKeys);
  for (; !patterns.empty(); patterns = patterns.subspan(kTileKeys)) {
    places.push_back(add_one(patterns.first(kTileKeys)));
  }
  return places;
}

std::int32_t UniquePatterns::add_one(std::span<const std::uint64_t> words) {
  std::uint64_t hash = 0;
  for (const std::uint64_t word : words) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 29;
  }
  const auto [begin, end] = places_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (std::equal(words.begin(), words.end(),
                   out_.begin() + std::ptrdiff_t{it->second} * kTileKeys)) {
      return it->second;
    }
  }
  const auto next = static_cast<std::int32_t>(out_.size() / kTileKeys);
  places_.emplace(hash, next);
  out_.insert(out_.end(), words.begin(), words.end());
  return next;
}

}  // namespace longca::slice
