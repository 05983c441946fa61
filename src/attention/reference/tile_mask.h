#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "mask/mask.h"

namespace longca {

/// Tokens of a tile of the reference, of queries as of keys.
inline constexpr std::int64_t kTile = 64;

constexpr std::int64_t tile_count(std::int64_t tokens) {
  return (tokens + kTile - 1) / kTile;
}

/// Whether a tile owns queries (and meets tiles of keys) or keys (and meets tiles of queries).
enum class TileOwner : std::uint8_t { queries, keys };

/// The tiles that one tile's tokens may see (or be seen by), from the intervals of its tokens
/// alone: the reference asks the mask nothing else, so that faults of the mask's tile queries show.
struct TileMask {
  /// For each token (lane) of the owner, which tokens of the partner are allowed: bit p for token
  /// p.
  using Bits = std::array<std::uint64_t, kTile>;
  struct Partner {
    std::int64_t tile = 0;
    std::int64_t bits = -1;  ///< index into `bits`, or −1: all 64 × 64 cells are allowed
  };

  std::vector<Partner> partners;  ///< ascending, those with an allowed cell
  std::vector<Bits> bits;

  static TileMask make(const Mask& mask, int mask_head, TileOwner owner, std::int64_t tile);
};

/// Number of partners, without the rest.
std::int64_t count_partners(const Mask& mask, int mask_head, TileOwner owner, std::int64_t tile);

}  // namespace longca
