#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define LONGCA_BAND_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define LONGCA_BAND_HOST_DEVICE inline
#endif

namespace longca::fa2_sparse {

/// Tokens [begin, end) of a tile; none if end ≤ begin.
struct Tokens {
  std::int32_t begin;
  std::int32_t end;
};

/// The cells that a mask allows in kept blocks: query q attends to keys [q + low, q + high) of
/// [0, tokens_k). Tokens are at most 2^30 and limits within ±2^30, so that sums do not overflow.
struct Band {
  std::int32_t low;
  std::int32_t high;
  std::int32_t tokens_q;
  std::int32_t tokens_k;

  /// Branch-free: evaluated for every cell of a partial tile.
  LONGCA_BAND_HOST_DEVICE bool allows(std::int32_t q, std::int32_t k) const {
    return (static_cast<int>(k >= q + low) & static_cast<int>(k < q + high) &
            static_cast<int>(k < tokens_k)) != 0;
  }

  /// The keys allowed for some query of `rows` (not empty), clipped to the mask.
  LONGCA_BAND_HOST_DEVICE Tokens keys_of(Tokens rows) const {
    const std::int32_t begin = rows.begin + low;
    const std::int32_t end = rows.end - 1 + high;
    return {begin > 0 ? begin : 0, end < tokens_k ? end : tokens_k};
  }
  /// The queries allowed for some key of `keys` (not empty), clipped likewise.
  LONGCA_BAND_HOST_DEVICE Tokens rows_of(Tokens keys) const {
    const std::int32_t begin = keys.begin - high + 1;
    const std::int32_t end = keys.end - low;
    return {begin > 0 ? begin : 0, end < tokens_q ? end : tokens_q};
  }

  /// Whether no cell of `rows` × `keys` is allowed; rows beyond tokens_q do not count.
  LONGCA_BAND_HOST_DEVICE bool empty(Tokens rows, Tokens keys) const {
    const Tokens seen = keys_of(rows);
    return (static_cast<int>(keys.begin >= seen.end) | static_cast<int>(keys.end <= seen.begin) |
            static_cast<int>(seen.begin >= seen.end)) != 0;
  }
  /// Whether some cell of `rows` × `keys` is masked.
  LONGCA_BAND_HOST_DEVICE bool partial(Tokens rows, Tokens keys) const {
    return (static_cast<int>(keys.end > rows.begin + high) |
            static_cast<int>(keys.begin < rows.end - 1 + low) |
            static_cast<int>(keys.end > tokens_k)) != 0;
  }
};

/// A decoded entry of the TileList: the tile's index, and whether it is partial.
struct TileEntry {
  int index;
  bool test;

  LONGCA_BAND_HOST_DEVICE static TileEntry of(int entry) { return {entry >> 1, (entry & 1) != 0}; }
};

/// The encoded entry of tile `index` of `rows` × `keys`; negative if the band leaves it empty.
LONGCA_BAND_HOST_DEVICE int entry_of(int index, const Band& band, Tokens rows, Tokens keys) {
  if (band.empty(rows, keys)) return -1;
  return 2 * index + static_cast<int>(band.partial(rows, keys));
}

}  // namespace longca::fa2_sparse
