#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "core/error.h"
#include "mask/mask.h"
#include "mask/oracle.h"

namespace longca::slice {

/// Block bounds of up to `longest` tokens each.
inline std::vector<std::int64_t> random_bounds(std::int64_t tokens, std::int64_t longest) {
  std::vector<std::int64_t> bounds = {0};
  while (bounds.back() < tokens) {
    bounds.push_back(
        std::min(bounds.back() + *rc::gen::inRange<std::int64_t>(1, longest + 1), tokens));
  }
  return bounds;
}

inline BlockLists random_block_lists(std::int64_t q_tokens, std::int64_t k_tokens) {
  const auto longest = *rc::gen::element<std::int64_t>(8, 64, 64, 160);
  BlockLists blocks;
  blocks.q_bounds = random_bounds(q_tokens, longest);
  blocks.k_bounds = random_bounds(k_tokens, longest);
  blocks.heads = *rc::gen::inRange(1, 4);
  blocks.offsets = {0};
  const int density = *rc::gen::inRange(0, 5);
  for (std::int64_t list = 0; list < blocks.heads * blocks.q_blocks(); ++list) {
    for (std::int64_t j = 0; j < blocks.k_blocks(); ++j) {
      if (*rc::gen::inRange(0, 4) < density) {
        blocks.indices.push_back(static_cast<std::int32_t>(j));
      }
    }
    blocks.offsets.push_back(static_cast<std::int64_t>(blocks.indices.size()));
  }
  return blocks;
}

/// Up to some hundred tokens, so that several query tiles and sub-tiles meet; slices of all types,
/// a third with block lists of one to three heads. To be called inside a property.
inline Mask random_long_mask() {
  const auto tokens = [] {
    return *rc::gen::weightedOneOf<std::int64_t>(
        {{1, rc::gen::element<std::int64_t>(0, 1, 63, 64, 65, 127, 128, 129)},
         {3, rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::int64_t>(1, 330))}});
  };
  const std::int64_t q_tokens = tokens();
  const std::int64_t k_tokens = *rc::gen::arbitrary<bool>() ? q_tokens : tokens();
  std::vector<MaskSlice> slices;
  for (const MaskSlice& slice :
       oracle::random_slices(q_tokens, k_tokens, *rc::gen::inRange(0, 10))) {
    slices.push_back(slice);
    try {
      static_cast<void>(Mask::from_slices(q_tokens, k_tokens, slices));
    } catch (const InputError&) {
      slices.pop_back();  // it meets another
    }
  }
  if (*rc::gen::inRange(0, 3) != 0) return Mask::from_slices(q_tokens, k_tokens, slices);
  if (slices.empty()) slices = {{0, q_tokens, 0, k_tokens, MaskSliceType::full}};
  return Mask::from_blocks(q_tokens, k_tokens, slices, random_block_lists(q_tokens, k_tokens));
}

}  // namespace longca::slice
