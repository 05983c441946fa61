#include "attention/kernels/slice/planner/ordered_work.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "attention/kernels/slice/planner/transposed_lists.h"
#include "mask/generators.h"

namespace longca::slice {
namespace {

/// In a fixed order, of documents that wait little longer with fewer KV heads in work.
struct OrderedCase {
  std::int64_t cache_bytes;
  int heads;
  std::int64_t chunk_tiles;  ///< multiples of it bound the items of split key tiles
};

class SliceOrderedWork : public ::testing::TestWithParam<OrderedCase> {};

/// 64 KB a visit: chunks of 256 take 16 MB a head, and L2 keeps four fifths of its size. For eight
/// heads that is in 200 MB; in 100 there would be room for halves, with which they end 2 % later;
/// in 50 for four heads with halves.
INSTANTIATE_TEST_SUITE_P(Caches, SliceOrderedWork,
                         ::testing::Values(OrderedCase{std::int64_t{200} << 20, 8, 256},
                                           OrderedCase{std::int64_t{100} << 20, 8, 256},
                                           OrderedCase{std::int64_t{50} << 20, 4, 128}));

TEST_P(SliceOrderedWork, KeepsTheRowsOfHeadsInWorkInL2) {
  cost::Platform platform = cost::default_platform();
  platform.device.cache_bytes = GetParam().cache_bytes;
  const BackwardWork work = {
      .platform = platform, .heads_q = 64, .heads_k = 8, .ctas = 132, .ordered = true};
  MaskSpec spec;
  spec.name = "shared_question";
  spec.tokens = 32768;
  const TransposedLists lists = make_transposed_lists(generate_mask(spec).mask, 8, work);
  EXPECT_EQ(lists.section_heads, GetParam().heads);
  ASSERT_FALSE(lists.split_keys.empty());
  std::int32_t largest = 0;
  for (const WorkItem& item : lists.order) {
    if (item.split < 0) continue;
    largest = std::max(largest, item.q_end - item.q_begin);
    EXPECT_EQ(item.q_begin / GetParam().chunk_tiles, (item.q_end - 1) / GetParam().chunk_tiles);
  }
  EXPECT_EQ(largest, GetParam().chunk_tiles);
}

}  // namespace
}  // namespace longca::slice
