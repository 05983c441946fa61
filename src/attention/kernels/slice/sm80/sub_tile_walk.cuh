#pragma once

#include "attention/kernels/slice/launch.h"

namespace longca::slice::sm80 {

/// A sub-tile of keys as a row group sees it.
struct SubTile {
  int k_begin;
  int pattern;       ///< kFull, kNone or an index of TileLists::patterns
  int first_column;  ///< of its key tile, 0 or 64
};

/// Walks the sub-tiles of a query tile: two of each partial tile, then those of full runs, from the
/// first key on. Every thread walks alike but for `group`, whose patterns it gets. Reads the lists
/// one entry ahead, so that no visit waits for them.
class SubTileWalk {
 public:
  __device__ __forceinline__ SubTileWalk(const DeviceTileLists& lists, const QueryTile& tile,
                                         int group)
      : partial_(lists.partial + tile.partial_begin),
        run_(lists.runs + tile.runs_begin),
        partial_left_(2 * tile.partial_count),
        full_left_(2 * tile.full_tiles),
        group_(group) {
    if (partial_left_ > 0) tile_ = *partial_;
    if (full_left_ > 0) run_next_ = *run_;
  }

  __device__ __forceinline__ int left() const { return partial_left_ + full_left_; }

  __device__ __forceinline__ SubTile next() {
    if (partial_left_ > 0) return next_partial();
    if (in_run_ == 0) {
      at_ = run_next_.k_begin;
      in_run_ = run_next_.sub_tiles;
      if (full_left_ > in_run_) run_next_ = *++run_;
    }
    const SubTile sub_tile = {at_, kFull, 0};
    at_ += kSubTileKeys;
    --in_run_;
    --full_left_;
    return sub_tile;
  }

 private:
  __device__ __forceinline__ SubTile next_partial() {
    const bool second = partial_left_ % 2 == 1;
    SubTile sub_tile = {tile_.k_begin[0], group_ == 0 ? tile_.pattern[0] : tile_.pattern[1], 0};
    if (second) {
      const bool absent = tile_.k_begin[1] == kAbsent;  // loads the first one again, masked
      sub_tile = {absent ? sub_tile.k_begin : tile_.k_begin[1], absent ? kNone : sub_tile.pattern,
                  kSubTileKeys};
      if (partial_left_ > 1) tile_ = *++partial_;
    }
    --partial_left_;
    return sub_tile;
  }

  const PartialTile* partial_;
  const FullRun* run_;
  int partial_left_;  ///< sub-tiles of partial tiles, absent ones included
  int full_left_;     ///< sub-tiles of full runs
  int group_;
  PartialTile tile_ = {};
  FullRun run_next_ = {};
  int at_ = 0;      ///< first key of the current run's next sub-tile
  int in_run_ = 0;  ///< sub-tiles left of the current run
};

}  // namespace longca::slice::sm80
