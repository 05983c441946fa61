#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define LONGCA_BAND_HOST_DEVICE __host__ __device__ __forceinline__
#else
#define LONGCA_BAND_HOST_DEVICE inline
#endif

namespace longca::fa2_sparse {

/// Tokens [begin, end) of a tile; none if the end is not above the begin.
struct Tokens {
  std::int32_t begin;
  std::int32_t end;
};

/// The cells that a mask allows where its blocks are kept: query q sees the keys [q + low,
/// q + high) of [0, tokens_k). Tokens are at most 2^30 and limits between −2^30 and 2^30, so that
/// no sum overflows.
struct Band {
  std::int32_t low;
  std::int32_t high;
  std::int32_t tokens_q;
  std::int32_t tokens_k;

  /// Without a branch: kernels call it for every cell of a partial tile.
  LONGCA_BAND_HOST_DEVICE bool allows(std::int32_t q, std::int32_t k) const {
    return (static_cast<int>(k >= q + low) & static_cast<int>(k < q + high) &
            static_cast<int>(k < tokens_k)) != 0;
  }

  /// The keys that some query of `rows` (not empty) may see, cut at the mask's edge.
  LONGCA_BAND_HOST_DEVICE Tokens keys_of(Tokens rows) const {
    const std::int32_t begin = rows.begin + low;
    const std::int32_t end = rows.end - 1 + high;
    return {begin > 0 ? begin : 0, end < tokens_k ? end : tokens_k};
  }
  /// The queries that may see some key of `keys` (not empty), likewise.
  LONGCA_BAND_HOST_DEVICE Tokens rows_of(Tokens keys) const {
    const std::int32_t begin = keys.begin - high + 1;
    const std::int32_t end = keys.end - low;
    return {begin > 0 ? begin : 0, end < tokens_q ? end : tokens_q};
  }

  /// Whether no query of `rows` may see a key of `keys`; rows beyond tokens_q do not count.
  LONGCA_BAND_HOST_DEVICE bool empty(Tokens rows, Tokens keys) const {
    const Tokens seen = keys_of(rows);
    return (static_cast<int>(keys.begin >= seen.end) | static_cast<int>(keys.end <= seen.begin) |
            static_cast<int>(seen.begin >= seen.end)) != 0;
  }
  /// Whether some query of `rows` may not see some key of `keys`: the tile's cells must be tested.
  LONGCA_BAND_HOST_DEVICE bool partial(Tokens rows, Tokens keys) const {
    return (static_cast<int>(keys.end > rows.begin + high) |
            static_cast<int>(keys.begin < rows.end - 1 + low) |
            static_cast<int>(keys.end > tokens_k)) != 0;
  }
};

}  // namespace longca::fa2_sparse
