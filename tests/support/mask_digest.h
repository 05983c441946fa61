#pragma once

#include "mask/mask.h"
#include "support/digest.h"

namespace longca {

inline void digest(testing::Digest& out, const Range& range) {
  const auto& [begin, end] = range;
  out.add(begin, end);
}

inline void digest(testing::Digest& out, const MaskSlice& slice) {
  const auto& [q_begin, q_end, k_begin, k_end, type] = slice;
  out.add(q_begin, q_end, k_begin, k_end, type);
}

inline void digest(testing::Digest& out, const Mask& mask) {
  out.add(mask.q_tokens(), mask.k_tokens(), mask.slices().size());
  for (const auto& slice : mask.slices()) digest(out, slice);
  const auto* blocks = mask.blocks();
  out.add(blocks != nullptr);
  if (blocks == nullptr) return;
  const auto& [q_bounds, k_bounds, heads, offsets, indices] = *blocks;
  out.add(q_bounds, k_bounds, heads, offsets, indices);
}

}  // namespace longca
