#pragma once

#include <cstdint>
#include <span>

#include "mask/mask_slice.h"

namespace longca {

/// How many tokens ranges have together, each range counted for itself.
inline std::int64_t total_size(std::span<const Range> ranges) {
  std::int64_t sum = 0;
  for (const Range range : ranges) sum += range.size();
  return sum;
}

}  // namespace longca
