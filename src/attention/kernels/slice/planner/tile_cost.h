#pragma once

#include <algorithm>
#include <cstdint>

namespace longca::slice {

/// What a CTA of the sm_90a kernel spends, in cycles, at 128 dimensions: what packs are
/// compared by, and what orders the tiles; from its rates for full rows of 8K keys and for windows
/// of 1K on an H200. A product of 128 × 128 × 128 twice takes 2048 at least.
inline constexpr std::int64_t kTileStartCycles = 3200;   ///< Q, the first keys, and the results
inline constexpr std::int64_t kFullTileCycles = 2620;    ///< two products, softmax beside them
inline constexpr std::int64_t kPartialTileCycles = 2900;  ///< the same under a mask
inline constexpr std::int64_t kNarrowTileCycles = 2000;  ///< of one half, nothing beside it
/// In a pair of CTAs, which waits for the slower one at both ends.
inline constexpr std::int64_t kPairStartCycles = 4000;
inline constexpr double kPairTileShare = 0.975;

struct TileCounts {
  std::int64_t full = 0;
  std::int64_t partial = 0;  ///< of two sub-tiles
  std::int64_t narrow = 0;  ///< of one

  std::int64_t tile_cycles() const {
    return full * kFullTileCycles + partial * kPartialTileCycles + narrow * kNarrowTileCycles;
  }
  std::int64_t cycles() const { return kTileStartCycles + tile_cycles(); }
  std::int64_t pair_cycles() const {
    return kPairStartCycles +
           static_cast<std::int64_t>(kPairTileShare * static_cast<double>(tile_cycles()));
  }
};

inline std::int32_t saturated(std::int64_t cycles) {
  return static_cast<std::int32_t>(std::min<std::int64_t>(cycles, INT32_MAX));
}

}  // namespace longca::slice
