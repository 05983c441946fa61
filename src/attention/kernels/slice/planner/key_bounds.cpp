#include "attention/kernels/slice/planner/key_bounds.h"

#include <algorithm>

#include "attention/kernels/slice/planner/tile_lists.h"

namespace longca::slice {
namespace {

/// Where slices begin or end to have keys: ascending, the number of keys last.
std::vector<std::int64_t> breaks_of(const Mask& mask) {
  std::vector<std::int64_t> breaks = {mask.k_tokens()};
  for (const MaskSlice& slice : mask.slices()) {
    breaks.push_back(slice.k_begin);
    breaks.push_back(slice.k_end);
  }
  std::sort(breaks.begin(), breaks.end());
  breaks.erase(std::unique(breaks.begin(), breaks.end()), breaks.end());
  return breaks;
}

std::int64_t tiles_for(std::int64_t keys) {
  return (keys + kTileKeys - 1) / kTileKeys;
}

}  // namespace

std::vector<std::int64_t> key_bounds(const Mask& mask) {
  const std::int64_t keys = mask.k_tokens();
  const std::vector<std::int64_t> breaks = breaks_of(mask);
  std::vector<std::int64_t> bounds = {0};
  auto next = breaks.begin();  // the first break beyond the tile's begin
  while (bounds.back() < keys) {
    std::int64_t end = std::min(bounds.back() + kTileKeys, keys);
    while (next != breaks.end() && *next <= bounds.back()) ++next;
    // What starts in this tile and does not end there: would it have fewer tiles without this one?
    for (auto it = next; it != breaks.end() && *it < end; ++it) {
      const auto after = it + 1;
      if (after == breaks.end() || *after <= end) continue;
      const std::int64_t length = *after - *it;
      if (tiles_for(length) < 1 + tiles_for(length - (end - *it))) end = *it;
      break;
    }
    bounds.push_back(end);
  }
  return bounds;
}

}  // namespace longca::slice
