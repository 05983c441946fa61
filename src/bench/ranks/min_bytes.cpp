#include "bench/ranks/min_bytes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "mask/range.h"

namespace longca {
namespace {

std::int64_t size_of_union(std::vector<Range> ranges) {
  join_ranges(ranges);
  return total_size(ranges);
}

/// Appends the keys of one list's kept blocks. In every mask with blocks, the slices that they cut
/// span all keys of their rows.
void append_kept(const BlockLists& blocks, int list, std::vector<Range>& keys) {
  for (std::int64_t i = 0; i < blocks.q_blocks(); ++i) {
    for (const std::int32_t block : blocks.kept(list, i)) {
      const auto k = static_cast<std::size_t>(block);
      keys.push_back({blocks.k_bounds[k], blocks.k_bounds[k + 1]});
    }
  }
}

/// Keys that some query sees, summed over KV heads. Each key of a slice, whatever its type, is seen
/// by the slice's first or last query.
std::int64_t keys_seen(const Mask& mask, int heads_k) {
  const BlockLists* blocks = mask.blocks();
  if (blocks == nullptr) {
    std::vector<Range> keys;
    for (const MaskSlice& slice : mask.slices()) keys.push_back({slice.k_begin, slice.k_end});
    return heads_k * size_of_union(std::move(keys));
  }
  std::int64_t seen = 0;
  const int lists_per_head = std::max(1, blocks->heads / heads_k);
  for (int head = 0; head < heads_k; ++head) {
    std::vector<Range> keys;
    const int first = static_cast<int>(std::int64_t{head} * blocks->heads / heads_k);
    for (int i = 0; i < lists_per_head; ++i) append_kept(*blocks, first + i, keys);
    seen += size_of_union(std::move(keys));
  }
  return seen;
}

}  // namespace

std::int64_t min_bytes_received(const Problem& whole, const Mask& mask,
                                std::span<const Range> own) {
  const std::vector<Range> others = outside(own, mask.k_tokens());
  if (own.empty() || others.empty()) return 0;
  const std::int64_t rows = keys_seen(mask.sub_mask(own, others), whole.heads_k);
  std::int64_t bytes = 2 * rows * whole.head_dim * size_of(whole.dtype);
  if (whole.backward) {
    bytes += 2 * keys_seen(mask.sub_mask(others, own), whole.heads_k) * whole.head_dim * 4;
  }
  return bytes;
}

}  // namespace longca
