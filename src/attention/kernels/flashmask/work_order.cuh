#pragma once

#include <cstdint>

namespace longca::flashmask {

struct WorkItem {
  int block;
  int head;
};

/// What CTA blockIdx.x does: heads in sections that fit in L2; inside a section the longest
/// blocks of all its heads first.
__device__ __forceinline__ WorkItem work_item(const std::int32_t* order, int blocks, int heads,
                                              int section_heads) {
  const int index = static_cast<int>(blockIdx.x);
  const int section = index / (blocks * section_heads);
  const int rest = index - section * blocks * section_heads;
  const int first_head = section * section_heads;
  const int width = min(section_heads, heads - first_head);
  return {order[rest / width], first_head + rest % width};
}

}  // namespace longca::flashmask
