#pragma once

#include <cstdint>
#include <vector>

#include "core/python_random.h"
#include "mask/mask.h"

namespace longca {

/// How the kept blocks of a block-sparse mask are drawn at random.
///
/// For every (head, query block) each key block gets a 32-bit number, and the `kept_blocks` key
/// blocks with the smallest numbers are kept, of equal numbers the earlier block. The number of key
/// block j is word j mod 4 of philox4x32_10(counter = {head, query block, j / 4, 0},
/// philox_key(seed)): one draw serves four key blocks, and any block's can be had without the
/// others, so that a GPU reproduces the lists with one thread per draw and a selection per row.
BlockLists draw_blocks(std::vector<std::int64_t> q_bounds, std::vector<std::int64_t> k_bounds,
                       int heads, double density, std::uint64_t seed);

/// max(1, round(density · k_blocks)), halves to even as Python's round; 0 of 0 blocks.
std::int64_t kept_blocks(double density, std::int64_t k_blocks);

/// 0, block, 2 · block, … tokens: the last block is cut.
std::vector<std::int64_t> uniform_bounds(std::int64_t tokens, std::int64_t block);

/// Blocks of randint(block // 2, block + block // 2) tokens, at least 1, until they fill `tokens`;
/// the last is cut.
std::vector<std::int64_t> variable_bounds(std::int64_t tokens, std::int64_t block,
                                          PythonRandom& random);

}  // namespace longca
