#pragma once

#include <cstdint>
#include <vector>

#include "core/python_random.h"
#include "mask/mask.h"

namespace longca {

/// The blocks to choose from, and how many to keep.
struct BlockChoice {
  /// As in BlockLists.
  std::vector<std::int64_t> q_bounds;
  std::vector<std::int64_t> k_bounds;
  int heads = 1;         ///< number of lists
  double density = 0.5;  ///< share of its visible key blocks that a query block keeps
  bool causal = false;   ///< key blocks that begin after a query block's last token are not visible

  std::int64_t q_blocks() const { return static_cast<std::int64_t>(q_bounds.size()) - 1; }
  std::int64_t k_blocks() const { return static_cast<std::int64_t>(k_bounds.size()) - 1; }
  /// Per query block: the number of leading key blocks it chooses from. Never decreases.
  std::vector<std::int64_t> visible() const;
};

/// Lists whose offsets are final and whose indices are still to be written. Throws InputError for
/// more than 2³¹ indices (8 GiB).
BlockLists lists_to_fill(const BlockChoice& choice);

/// Draws the kept blocks of a block-sparse mask at random; multithreaded.
///
/// Every (head, query block) gives each key block a 32-bit random number and keeps the
/// `kept_blocks` visible key blocks with the smallest numbers; ties go to the earlier block. The
/// number of key block j is word j mod 4 of philox4x32_10(counter = {head, query block, j / 4, 0},
/// philox_key(seed)), so a GPU can reproduce the lists with independent draws.
BlockLists draw_blocks(const BlockChoice& choice, std::uint64_t seed);

/// max(1, round(density · k_blocks)) with Python's rounding of halves to even; 0 if k_blocks is 0.
std::int64_t kept_blocks(double density, std::int64_t k_blocks);

/// 0, block, 2 · block, …, tokens: the last block may be shorter.
std::vector<std::int64_t> uniform_bounds(std::int64_t tokens, std::int64_t block);

/// Bounds of blocks of max(1, randint(block // 2, block + block // 2)) tokens that fill `tokens`,
/// the last one cut.
std::vector<std::int64_t> variable_bounds(std::int64_t tokens, std::int64_t block,
                                          PythonRandom& random);

}  // namespace longca
