#pragma once

#include <cstdint>
#include <vector>

#include "mask/block_lists.h"

// Where tiles of tokens end under block lists whose blocks have any size: a tile that reaches from
// one block into the next has to visit what either of them sees, so that some are better cut there.
namespace longca::slice {

enum class BlockSide : std::uint8_t { queries, keys };

/// What a tile costs, in any unit.
struct TileCosts {
  double start = 0;        ///< whatever it sees, in all lists together
  double token = 0;        ///< per token of the other side that a list has it see
  double half_share = 1;   ///< of that, where the tokens of one half of the tile alone see it
  double short_share = 1;  ///< of all that, where the tile has fewer tokens than it may have
};

/// Bounds of tiles of at most `tile` tokens of a side, ascending from 0 to the number of tokens,
/// the same for all lists, that cost little in all: a shortest path over the places where a tile
/// can end, `tile` tokens behind its first one and at bounds of blocks. The halves of a tile are
/// its first tile / 2 tokens and the others. O(tokens · tile), for a core some 0.2 µs a token;
/// beyond 16M tokens all tiles are whole.
std::vector<std::int64_t> cut_at_blocks(const BlockLists& blocks, BlockSide side, std::int64_t tile,
                                        const TileCosts& costs);

}  // namespace longca::slice
