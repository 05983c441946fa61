#include "advise/touched_tiles.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

#include "attention/adapters/block_form.h"
#include "core/rounding.h"
#include "mask/tiles.h"

namespace longca::advise {
namespace {

using Bits = std::vector<std::uint64_t>;  ///< one for each tile column
constexpr std::int64_t kWord = 64;

/// Tile columns of `keys` that the kept blocks of a row of blocks touch.
Bits touched_columns(const BlockLists& blocks, int list, std::int64_t row, std::int64_t keys) {
  const std::int64_t columns = ceil_div(blocks.k_bounds.back(), keys);
  Bits bits(static_cast<std::size_t>(ceil_div(columns, kWord)), 0);
  for (const std::int32_t kept : blocks.kept(list, row)) {
    const auto block = static_cast<std::size_t>(kept);
    const std::int64_t last = (blocks.k_bounds[block + 1] - 1) / keys;
    for (std::int64_t column = blocks.k_bounds[block] / keys; column <= last; ++column) {
      bits[static_cast<std::size_t>(column / kWord)] |= std::uint64_t{1} << (column % kWord);
    }
  }
  return bits;
}

std::int64_t count_of(const Bits& bits) {
  std::int64_t count = 0;
  for (const std::uint64_t word : bits) count += std::popcount(word);
  return count;
}

std::int64_t count_of_blocks(const BlockLists& blocks, int list, std::int64_t queries,
                             std::int64_t keys) {
  std::int64_t count = 0;
  Bits shared;  // of the tile row that the last row of blocks ends within
  for (std::int64_t row = 0; row < blocks.q_blocks(); ++row) {
    std::int64_t begin = blocks.q_bounds[static_cast<std::size_t>(row)];
    const std::int64_t end = blocks.q_bounds[static_cast<std::size_t>(row) + 1];
    const Bits own = touched_columns(blocks, list, row, keys);
    if (!shared.empty()) {
      for (std::size_t i = 0; i < own.size(); ++i) shared[i] |= own[i];
      begin = std::min(end, round_up(begin, queries));
      if (begin == end && end % queries != 0) continue;
      count += count_of(shared);
      shared.clear();
    }
    count += (end - begin) / queries * count_of(own);
    if (end % queries != 0 && begin < end) shared = own;
  }
  return shared.empty() ? count : count + count_of(shared);
}

}  // namespace

std::int64_t count_touched_tiles(const Mask& mask, int head, std::int64_t queries,
                                 std::int64_t keys) {
  if (mask.blocks() != nullptr && keeps_whole_blocks(mask)) {
    const int lists = mask.blocks()->heads;
    return count_of_blocks(*mask.blocks(), head * lists / mask.heads(), queries, keys);
  }
  return tile_runs(mask, head, queries, keys).tiles();
}

}  // namespace longca::advise
