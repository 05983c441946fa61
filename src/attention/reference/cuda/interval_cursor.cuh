#pragma once

#include "attention/reference/cuda/passes.h"
#include "attention/reference/tile_mask.h"

namespace longca::reference {

/// Walks the intervals of one token while its tile meets partners in ascending order.
class IntervalCursor {
 public:
  /// `row` counts tokens over the heads of the lists.
  __device__ void start(const DeviceIntervals& mask, std::int64_t row) {
    const std::int32_t list = mask.list_of[row];
    next_ = mask.intervals + mask.list_offsets[list];
    end_ = mask.intervals + mask.list_offsets[list + 1];
  }

  /// Which of the 64 partners from `first` on the token sees; intervals behind are done with.
  __device__ std::uint64_t allowed(std::int64_t first) {
    std::uint64_t bits = 0;
    while (next_ < end_ && next_->end <= first) ++next_;
    for (const TokenInterval* i = next_; i < end_ && i->begin < first + kTile; ++i) {
      const std::int64_t begin = max(i->begin - first, std::int64_t{0});
      const std::int64_t end = min(i->end - first, kTile);
      bits |= ~std::uint64_t{0} >> (kTile - (end - begin)) << begin;
    }
    return bits;
  }

 private:
  const TokenInterval* next_ = nullptr;  ///< none without a start: a token past the end
  const TokenInterval* end_ = nullptr;
};

}  // namespace longca::reference
