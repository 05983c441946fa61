#pragma once

#include <cstdint>
#include <vector>

#include "attention/kernels/slice/planner/tile_lists.h"

namespace longca::slice {

/// How often a list visits every cell, read from it as a kernel does.
class Visits {
 public:
  Visits(const TileLists& lists, std::int64_t list, std::int64_t q_tokens, std::int64_t k_tokens)
      : lists_(lists), k_tokens_(k_tokens), cells_(static_cast<std::size_t>(q_tokens * k_tokens)) {
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
    faults_ += tile.row_end <= tile.row_begin || tile.row_end - tile.row_begin > 128 / lists_.pack;
    visit_runs(tile);
    bool pairs = false;  // singles come first
    for (std::int32_t i = 0; i < tile.listed_count; ++i) {
      const ListedTile& listed = lists_.listed[static_cast<std::size_t>(tile.listed_begin + i)];
      faults_ += pairs && listed.k_begin[1] == kAbsent;
      pairs |= listed.k_begin[1] != kAbsent;
      for (int group = 0; group < kRowGroups; ++group) visit_listed(tile, listed, group);
    }
  }

  void visit_runs(const QueryTile& tile) {
    auto run = static_cast<std::size_t>(tile.runs_begin);
    for (std::int32_t left = 2 * tile.full_tiles; left > 0; ++run) {
      const FullRun& keys = lists_.runs[run];
      faults_ += keys.halves <= 0 || keys.halves > left;
      left -= keys.halves;
      for (std::int32_t row = tile.row_begin; row < tile.row_end; ++row) {
        for (std::int32_t k = 0; k < kHalfKeys * keys.halves; ++k) visit(row, keys.k_begin + k);
      }
    }
  }

  void visit_listed(const QueryTile& tile, const ListedTile& listed, int group) {
    const int tokens = lists_.group_tokens();
    for (int t = 0; t < tokens; ++t) {
      const std::int32_t row = tile.row_begin + group * tokens + t;
      if (row >= tile.row_end) break;
      RowIntervals seen;
      if (listed.pattern[group] == kFull) seen = {0, kTileKeys, 0, 0};
      if (listed.pattern[group] >= 0) {
        seen = lists_.patterns[static_cast<std::size_t>(listed.pattern[group] * tokens + t)];
      }
      faults_ += seen.hi0 > kTileKeys || seen.hi1 > kTileKeys || seen.lo0 > seen.hi0 ||
                 seen.lo1 > seen.hi1 || (seen.hi1 != 0 && seen.lo1 <= seen.hi0);
      for (int j = seen.lo0; j < seen.hi0; ++j) visit_column(row, listed, j);
      for (int j = seen.lo1; j < seen.hi1; ++j) visit_column(row, listed, j);
    }
  }

  void visit_column(std::int32_t row, const ListedTile& listed, int column) {
    const std::int32_t k_begin = listed.k_begin[column / kHalfKeys];
    if (k_begin == kAbsent) {
      ++faults_;
    } else {
      visit(row, k_begin + column % kHalfKeys);
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
  std::int64_t k_tokens_;
  std::vector<std::uint8_t> cells_;
  int faults_ = 0;
};

}  // namespace longca::slice
