#pragma once

#include <cstdint>
#include <vector>

#include "core/python_random.h"
#include "mask/mask.h"

namespace longca {

/// Which blocks there are to keep, and how many.
struct BlockChoice {
  /// As in BlockLists.
  std::vector<std::int64_t> q_bounds;
  std::vector<std::int64_t> k_bounds;
  int heads = 1;         ///< number of lists
  double density = 0.5;  ///< share of its visible key blocks that a query block keeps
  bool causal = false;   ///< key blocks that begin after a query block's last token are not visible

  std::int64_t q_blocks() const { return static_cast<std::int64_t>(q_bounds.size()) - 1; }
  std::int64_t k_blocks() const { return static_cast<std::int64_t>(k_bounds.size()) - 1; }
  /// Per query block: it chooses among the first so many key blocks. Never decreases.
  std::vector<std::int64_t> visible() const;
};

/// Lists with offsets for the blocks that each (head, query block) will keep, and indices to be
/// written. Throws InputError for more than 2³¹ entries, 8 GiB.
BlockLists lists_to_fill(const BlockChoice& choice);

/// How the kept blocks of a block-sparse mask are drawn at random.
///
/// For every (head, query block) each key block gets a 32-bit number, and of the visible key blocks
/// the `kept_blocks` with the smallest numbers are kept, of equal numbers the earlier block. The
/// number of key block j is word j mod 4 of philox4x32_10(counter = {head, query block, j / 4, 0},
/// philox_key(seed)): one draw serves four key blocks, and any block's can be had without the
/// others, so that a GPU reproduces the lists with one thread per draw and a selection per row.
/// By several threads.
BlockLists draw_blocks(const BlockChoice& choice, std::uint64_t seed);

/// max(1, round(density · k_blocks)), halves to even as Python's round; 0 of 0 blocks.
std::int64_t kept_blocks(double density, std::int64_t k_blocks);

/// 0, block, 2 · block, … tokens: the last block is cut.
std::vector<std::int64_t> uniform_bounds(std::int64_t tokens, std::int64_t block);

/// Blocks of randint(block // 2, block + block // 2) tokens, at least 1, until they fill `tokens`;
/// the last is cut.
std::vector<std::int64_t> variable_bounds(std::int64_t tokens, std::int64_t block,
                                          PythonRandom& random);

}  // namespace longca
