#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/rounding.h"
#include "mask/mask.h"

namespace longca {

/// Tokens per tile of the reference, of queries and of keys.
inline constexpr std::int64_t kTile = 64;

constexpr std::int64_t tile_count(std::int64_t tokens) {
  return ceil_div(tokens, kTile);
}

/// The side whose results a pass accumulates. Its tile is the owner, and the tiles of the other
/// side that it loops over are the partners.
enum class TileOwner : std::uint8_t { queries, keys };

/// The non-empty partner tiles of one tile. Derived from the mask's per-token intervals alone, so
/// that the reference reveals faults of the mask's tile queries.
struct TileMask {
  /// Per token of the owner: bit p is set if token p of the partner is allowed.
  using Bits = std::array<std::uint64_t, kTile>;
  struct Partner {
    std::int64_t tile = 0;
    std::int64_t bits = -1;  ///< index into TileMask::bits; −1 if all 64 × 64 cells are allowed
  };

  std::vector<Partner> partners;  ///< ascending, non-empty
  std::vector<Bits> bits;

  static TileMask make(const Mask& mask, int mask_head, TileOwner owner, std::int64_t tile);
};

/// TileMask::make(…).partners.size().
std::int64_t count_partners(const Mask& mask, int mask_head, TileOwner owner, std::int64_t tile);

}  // namespace longca
