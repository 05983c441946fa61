#include "attention/kernels/slice/planner/tile_cover.h"

#include <algorithm>

namespace longca::slice {

void TileCover::cover(Range rows, std::span<const Band> bands) {
  find_ranges(rows, bands);
  place_sub_tiles();
  leave_even_runs();
}

/// The keys that a band allows never move left from one row to the next, and the rows' keys touch:
/// those of any of its rows, and those of all, are one range each. Bands share no cell, so that the
/// rows of those that fill a key add up.
void TileCover::find_ranges(Range rows, std::span<const Band> bands) {
  seen_.clear();
  common_.clear();
  edges_.clear();
  for (const Band& band : bands) {
    const Range first = band.keys_of(band.q.begin);
    const Range last = band.keys_of(band.q.end - 1);
    seen_.push_back({first.begin, last.end});
    if (last.begin >= first.end) continue;
    if (band.q == rows) {
      common_.push_back({last.begin, first.end});
    } else {
      edges_.push_back({last.begin, band.q.size()});
      edges_.push_back({first.end, -band.q.size()});
    }
  }
  if (seen_.size() > 1) join_ranges(seen_);
  std::sort(edges_.begin(), edges_.end(), [](Edge a, Edge b) { return a.key < b.key; });
  std::int64_t seeing = 0;
  for (std::size_t i = 0; i + 1 < edges_.size(); ++i) {
    seeing += edges_[i].rows;
    if (seeing == rows.size()) common_.push_back({edges_[i].key, edges_[i + 1].key});
  }
  if (common_.size() > 1) join_ranges(common_);
}

void TileCover::place_sub_tiles() {
  runs_.clear();
  partial_.clear();
  full_sub_tiles_ = 0;
  auto common = common_.begin();
  std::int64_t covered = 0;  // no key below is left to cover
  for (const Range& range : seen_) {
    for (std::int64_t key = std::max(covered, range.begin); key < range.end; key = covered) {
      while (common != common_.end() && common->end <= key) ++common;
      const bool inside = common != common_.end() && common->begin <= key;
      if (const std::int64_t sub_tiles = inside ? (common->end - key) / kSubTileKeys : 0; sub_tiles > 0) {
        runs_.push_back({static_cast<std::int32_t>(key), static_cast<std::int32_t>(sub_tiles)});
        full_sub_tiles_ += sub_tiles;
        covered = key + sub_tiles * kSubTileKeys;
      } else {
        partial_.push_back(key);
        covered = key + kSubTileKeys;
      }
    }
  }
}

/// A narrow full half goes to the partial ones, where it may find a partner.
void TileCover::leave_even_runs() {
  if (full_sub_tiles_ % 2 == 0) return;
  FullRun& last = runs_.back();
  --last.sub_tiles;
  partial_.push_back(last.k_begin + std::int64_t{last.sub_tiles} * kSubTileKeys);
  if (last.sub_tiles == 0) runs_.pop_back();
  --full_sub_tiles_;
}

}  // namespace longca::slice
