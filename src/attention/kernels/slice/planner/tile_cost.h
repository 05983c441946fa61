#pragma once

#include <algorithm>
#include <cstdint>

#include "cost/platform.h"

namespace longca::slice {

/// The key tiles of a query tile, by what they cost a CTA of the sm_90a kernel.
struct TileCounts {
  std::int64_t full = 0;
  std::int64_t partial = 0;  ///< of two sub-tiles
  std::int64_t narrow = 0;   ///< of one

  std::int64_t tile_cycles(const cost::SliceForwardCycles& rates) const {
    return full * rates.full_tile_cycles + partial * rates.partial_tile_cycles +
           narrow * rates.sub_tile_cycles;
  }
  std::int64_t cycles(const cost::SliceForwardCycles& rates) const {
    return rates.tile_start_cycles + tile_cycles(rates);
  }
  /// In a cluster of two CTAs, which wait for each other.
  std::int64_t pair_cycles(const cost::SliceForwardCycles& rates) const {
    return rates.pair_start_cycles +
           static_cast<std::int64_t>(rates.pair_tile_share *
                                     static_cast<double>(tile_cycles(rates)));
  }
};

inline std::int32_t saturated(std::int64_t cycles) {
  return static_cast<std::int32_t>(std::min<std::int64_t>(cycles, INT32_MAX));
}

}  // namespace longca::slice
