#include "attention/adapters/block_form.h"

#include <algorithm>

namespace longca {
namespace {

bool is_one_slice(const Mask& mask, MaskSliceType type) {
  const auto slices = mask.slices();
  return slices.size() == 1 && slices[0] == MaskSlice{0, mask.q_tokens(), 0, mask.k_tokens(), type};
}

}  // namespace

bool keeps_whole_blocks(const Mask& mask) {
  return mask.q_tokens() == 0 || mask.k_tokens() == 0 || is_one_slice(mask, MaskSliceType::full);
}

bool keeps_causal_blocks(const Mask& mask) {
  return mask.q_tokens() == mask.k_tokens() && is_one_slice(mask, MaskSliceType::causal);
}

bool are_multiples_of(std::int64_t size, std::span<const std::int64_t> bounds) {
  return std::all_of(bounds.begin(), bounds.end() - 1,
                     [&](std::int64_t bound) { return bound % size == 0; });
}

std::int64_t largest_block(std::span<const std::int64_t> bounds) {
  std::int64_t largest = 0;
  for (std::size_t i = 1; i < bounds.size(); ++i) {
    largest = std::max(largest, bounds[i] - bounds[i - 1]);
  }
  return largest;
}

}  // namespace longca
