#include "parallel/plan/mask_heads.h"

#include <numeric>
#include <utility>

#include "core/error.h"
#include "mask/list_of_head.h"

namespace longca {
namespace {

int list_of(const BlockLists& blocks, std::int64_t head, int heads_q) {
  return static_cast<int>(list_of_head(head, blocks.heads, heads_q));
}

/// Query heads that share one list of the result.
int heads_per_list(const BlockLists& blocks, int first, int count, int heads_q) {
  if (list_of(blocks, first, heads_q) == list_of(blocks, first + count - 1, heads_q)) return count;
  if (heads_q % blocks.heads != 0) return 1;
  return std::gcd(heads_q / blocks.heads, std::gcd(first, count));
}

}  // namespace

Mask heads_of(const Mask& mask, int first, int count, int heads_q) {
  LONGCA_CHECK(first >= 0 && count >= 1 && first + count <= heads_q, "heads {} … {} of {}", first,
               first + count, heads_q);
  const BlockLists* whole = mask.blocks();
  if (whole == nullptr || count == heads_q) return mask;
  const int group = heads_per_list(*whole, first, count, heads_q);
  BlockLists part{whole->q_bounds, whole->k_bounds, count / group, {0}, {}};
  for (int head = first; head < first + count; head += group) {
    const int list = list_of(*whole, head, heads_q);
    for (std::int64_t i = 0; i < whole->q_blocks(); ++i) {
      const auto kept = whole->kept(list, i);
      part.indices.insert(part.indices.end(), kept.begin(), kept.end());
      part.offsets.push_back(static_cast<std::int64_t>(part.indices.size()));
    }
  }
  const auto slices = mask.slices();
  return Mask::from_blocks(mask.q_tokens(), mask.k_tokens(), {slices.begin(), slices.end()},
                           std::move(part));
}

}  // namespace longca
