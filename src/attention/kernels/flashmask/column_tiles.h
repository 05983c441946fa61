#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define LONGCA_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define LONGCA_HOST_DEVICE inline
#endif

namespace longca::flashmask {

/// The query rows [start, end) masked for a key; none if end ≤ start.
struct alignas(8) MaskedRows {
  std::int32_t start = 0;
  std::int32_t end = 0;

  /// Branch-free: evaluated for every cell of a partial tile.
  LONGCA_HOST_DEVICE bool contain(std::int32_t row) const {
    return static_cast<int>(row >= start) & static_cast<int>(row < end);
  }
};

/// One key column of FlashMask's form (G. Wang et al., "FlashMask: Efficient and Rich Mask
/// Extension of FlashAttention", 2024, section 4.1): its masked rows below and above the diagonal.
struct alignas(16) Column {
  MaskedRows lt;
  MaskedRows ut;
};

/// The min and max start and end of one interval over the columns of a key block: some column may
/// mask rows in [start_min, end_max), and every column masks the rows [start_max, end_min). A
/// column with an empty interval does not extend the former and empties the latter.
struct alignas(16) IntervalBounds {
  std::int32_t start_min = INT32_MAX;
  std::int32_t start_max = 0;
  std::int32_t end_min = INT32_MAX;
  std::int32_t end_max = 0;
};

struct BlockBounds {
  IntervalBounds lt;
  IntervalBounds ut;
};

/// The class of a tile: skipped if `masked`; else partial, with the intervals to test per cell, or
/// full.
struct TileState {
  bool masked;
  bool test_lt;
  bool test_ut;
};

/// FlashMask's classification of the tile of query rows [row_begin, row_end) and one key block from
/// the block's bounds (section 4.2, equation 4). Conservative: a tile may be called partial that is
/// not.
LONGCA_HOST_DEVICE TileState classify(const BlockBounds& bounds, std::int32_t row_begin,
                                      std::int32_t row_end) {
  const auto covers = [&](const IntervalBounds& b) {
    return static_cast<int>(row_begin >= b.start_max) & static_cast<int>(row_end <= b.end_min);
  };
  const auto meets = [&](const IntervalBounds& b) {
    return static_cast<int>(row_begin < b.end_max) & static_cast<int>(row_end > b.start_min);
  };
  return {(covers(bounds.lt) | covers(bounds.ut)) != 0, meets(bounds.lt) != 0,
          meets(bounds.ut) != 0};
}

}  // namespace longca::flashmask
