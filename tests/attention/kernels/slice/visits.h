#pragma once

#include <cstdint>
#include <vector>

#include "attention/kernels/slice/planner/tile_lists.h"

namespace longca::slice {

/// How often a list visits every cell, read from it as a kernel does.
class Visits {
 public:
  Visits(const TileLists& lists, std::int64_t list, std::int64_t q_tokens, std::int64_t k_tokens)
      : lists_(lists),
        q_tokens_(q_tokens),
        k_tokens_(k_tokens),
        cells_(static_cast<std::size_t>(q_tokens * k_tokens)) {
    const auto begin = static_cast<std::size_t>(list * lists.tiles_per_list);
    for (std::size_t i = 0; i < static_cast<std::size_t>(lists.tiles_per_list); ++i) {
      visit(lists.tiles[begin + i]);
    }
  }

  const std::vector<std::uint8_t>& cells() const { return cells_; }
  /// Cells outside the mask's keys, or malformed entries.
  int faults() const { return faults_; }

 private:
  void visit(const QueryTile& tile) {
    const std::int64_t rows = tile.row_end - tile.row_begin;
    const bool may_be_empty = lists_.tiling.row_pairs && tile.row_end == q_tokens_;
    faults_ += rows < (may_be_empty ? 0 : 1) || rows > lists_.tiling.tile_tokens();
    visit_runs(tile);
    bool pairs = false;  // narrow tiles come first
    for (std::int32_t i = 0; i < tile.partial_count; ++i) {
      const auto at = static_cast<std::size_t>(tile.partial_begin + i);
      const PartialTile& partial = lists_.partial[at];
      joints_ = lists_.joints.empty() ? TileJoints{} : lists_.joints[at];
      faults_ += pairs && partial.k_begin[1] == kAbsent;
      pairs |= partial.k_begin[1] != kAbsent;
      for (int group = 0; group < kRowGroups; ++group) visit_partial(tile, partial, group);
    }
  }

  void visit_runs(const QueryTile& tile) {
    auto run = static_cast<std::size_t>(tile.runs_begin);
    for (std::int32_t left = 2 * tile.full_tiles; left > 0; ++run) {
      const FullRun& keys = lists_.runs[run];
      faults_ += keys.sub_tiles <= 0 || keys.sub_tiles > left;
      left -= keys.sub_tiles;
      for (std::int32_t row = tile.row_begin; row < tile.row_end; ++row) {
        for (std::int32_t k = 0; k < kSubTileKeys * keys.sub_tiles; ++k)
          visit(row, keys.k_begin + k);
      }
    }
  }

  void visit_partial(const QueryTile& tile, const PartialTile& partial, int group) {
    const int tokens = lists_.tiling.group_tokens();
    for (int t = 0; t < tokens; ++t) {
      const std::int32_t row = tile.row_begin + group * tokens + t;
      if (row >= tile.row_end) break;
      RowIntervals seen;
      if (partial.pattern[group] == kFull) seen = {0, kTileKeys, 0, 0};
      if (partial.pattern[group] >= 0) {
        seen = lists_.patterns[static_cast<std::size_t>(partial.pattern[group] * tokens + t)];
      }
      faults_ += seen.hi0 > kTileKeys || seen.hi1 > kTileKeys || seen.lo0 > seen.hi0 ||
                 seen.lo1 > seen.hi1 || (seen.hi1 != 0 && seen.lo1 <= seen.hi0);
      for (int j = seen.lo0; j < seen.hi0; ++j) visit_column(row, partial, j);
      for (int j = seen.lo1; j < seen.hi1; ++j) visit_column(row, partial, j);
    }
  }

  void visit_column(std::int32_t row, const PartialTile& partial, int column) {
    const int sub_tile = column / kSubTileKeys;
    const int of_sub_tile = column % kSubTileKeys;
    if (partial.k_begin[sub_tile] == kAbsent) {
      ++faults_;
    } else {
      visit(row,
            partial.k_begin[sub_tile] + of_sub_tile + joints_.joint[sub_tile].offset(of_sub_tile));
    }
  }

  void visit(std::int64_t row, std::int64_t key) {
    if (key < 0 || key >= k_tokens_) {
      ++faults_;
    } else {
      ++cells_[static_cast<std::size_t>(row * k_tokens_ + key)];
    }
  }

  const TileLists& lists_;
  std::int64_t q_tokens_, k_tokens_;
  std::vector<std::uint8_t> cells_;
  TileJoints joints_;  ///< of the partial tile that is visited
  int faults_ = 0;
};

}  // namespace longca::slice
