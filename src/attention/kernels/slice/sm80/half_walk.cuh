#pragma once

#include "attention/kernels/slice/launch.h"

namespace longca::slice::generic {

/// The next half to visit, as a row group sees it.
struct Half {
  int k_begin;
  int pattern;       ///< kFull, kNone or an index
  int first_column;  ///< of the half in its tile, 0 or 64
};

/// Walks the halves of a query tile: listed ones, then those of the runs. What comes next is read
/// ahead, so that no visit waits for the list.
class HalfWalk {
 public:
  __device__ __forceinline__ HalfWalk(const DeviceTileLists& lists, const QueryTile& tile,
                                      int group)
      : listed_(lists.listed + tile.listed_begin),
        run_(lists.runs + tile.runs_begin),
        listed_left_(2 * tile.listed_count),
        full_left_(2 * tile.full_tiles),
        group_(group) {
    if (listed_left_ > 0) tile_ = *listed_;
    if (full_left_ > 0) run_next_ = *run_;
  }

  __device__ __forceinline__ int left() const { return listed_left_ + full_left_; }

  __device__ __forceinline__ Half next() {
    if (listed_left_ > 0) return next_listed();
    if (in_run_ == 0) {
      at_ = run_next_.k_begin;
      in_run_ = run_next_.halves;
      if (full_left_ > in_run_) run_next_ = *++run_;
    }
    const Half half = {at_, kFull, 0};
    at_ += kHalfKeys;
    --in_run_;
    --full_left_;
    return half;
  }

 private:
  __device__ __forceinline__ Half next_listed() {
    const bool second = listed_left_ % 2 == 1;
    Half half = {tile_.k_begin[0], group_ == 0 ? tile_.pattern[0] : tile_.pattern[1], 0};
    if (second) {
      const bool absent = tile_.k_begin[1] == kAbsent;  // keys are loaded once more, for nobody
      half = {absent ? half.k_begin : tile_.k_begin[1], absent ? kNone : half.pattern, kHalfKeys};
      if (listed_left_ > 1) tile_ = *++listed_;
    }
    --listed_left_;
    return half;
  }

  const ListedTile* listed_;
  const FullRun* run_;
  int listed_left_;  ///< halves
  int full_left_;
  int group_;
  ListedTile tile_ = {};
  FullRun run_next_ = {};
  int at_ = 0;
  int in_run_ = 0;
};

}  // namespace longca::slice::generic
