#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/error.h"
#include "mask/mask.h"
#include "mask/oracle.h"

namespace longca {
namespace {

using oracle::Dense;
using oracle::RandomMask;

std::vector<std::int64_t> tokens_of(const std::vector<Range>& ranges) {
  std::vector<std::int64_t> tokens;
  for (const Range range : ranges) {
    for (std::int64_t i = range.begin; i < range.end; ++i) tokens.push_back(i);
  }
  return tokens;
}

Dense pick(const Dense& dense, const std::vector<Range>& q_ranges,
           const std::vector<Range>& k_ranges) {
  const auto queries = tokens_of(q_ranges);
  const auto keys = tokens_of(k_ranges);
  return Dense(static_cast<std::int64_t>(queries.size()), static_cast<std::int64_t>(keys.size()),
               [&](auto q, auto k) {
                 return dense.at(queries[static_cast<std::size_t>(q)],
                                 keys[static_cast<std::size_t>(k)]) != 0;
               });
}

RC_GTEST_PROP(SubMask, IsTheChosenRowsAndColumns, ()) {
  const RandomMask random = oracle::random_mask();
  const auto q_ranges = oracle::random_ranges(random.mask.q_tokens());
  const auto k_ranges = oracle::random_ranges(random.mask.k_tokens());
  const Mask sub = random.mask.sub_mask(q_ranges, k_ranges);
  RC_ASSERT(sub.heads() == random.mask.heads());
  for (int head = 0; head < sub.heads(); ++head) {
    const Dense expected = pick(random.heads[static_cast<std::size_t>(head)], q_ranges, k_ranges);
    RC_ASSERT(oracle::dense_of(sub, head) == expected);
    RC_ASSERT(sub.area(head) == expected.area());
  }
}

RC_GTEST_PROP(SubMask, OfASubMaskIsASubMask, ()) {
  const RandomMask random = oracle::random_mask();
  const auto q_ranges = oracle::random_ranges(random.mask.q_tokens());
  const auto k_ranges = oracle::random_ranges(random.mask.k_tokens());
  const Mask outer = random.mask.sub_mask(q_ranges, k_ranges);
  const auto q_inner = oracle::random_ranges(outer.q_tokens());
  const auto k_inner = oracle::random_ranges(outer.k_tokens());
  const Mask inner = outer.sub_mask(q_inner, k_inner);
  for (int head = 0; head < inner.heads(); ++head) {
    const Dense& whole = random.heads[static_cast<std::size_t>(head)];
    RC_ASSERT(oracle::dense_of(inner, head) ==
              pick(pick(whole, q_ranges, k_ranges), q_inner, k_inner));
  }
}

RC_GTEST_PROP(SubMask, OfEverythingIsTheMask, ()) {
  const RandomMask random = oracle::random_mask();
  const std::vector<Range> q_ranges = {{0, random.mask.q_tokens()}};
  const std::vector<Range> k_ranges = {{0, random.mask.k_tokens()}};
  const Mask same = random.mask.sub_mask(q_ranges, k_ranges);
  for (int head = 0; head < same.heads(); ++head) {
    RC_ASSERT(oracle::dense_of(same, head) == random.heads[static_cast<std::size_t>(head)]);
  }
  if (random.mask.blocks() != nullptr) RC_ASSERT(*same.blocks() == *random.mask.blocks());
}

TEST(SubMask, JoinsPiecesThatOneSliceCanHold) {
  const Mask causal = Mask::from_slices(16, 16, {{0, 16, 0, 16, MaskSliceType::causal}});
  // Tokens 4 to 8 and 12 to 16 see each other and nothing else: still causal.
  const std::vector<Range> chunks = {{4, 8}, {12, 16}};
  const Mask sub = causal.sub_mask(chunks, chunks);
  ASSERT_EQ(sub.slices().size(), 1U);
  EXPECT_EQ(sub.slices()[0], (MaskSlice{0, 8, 0, 8, MaskSliceType::causal}));
}

TEST(SubMask, CutsBlocksAndKeepsTheirLists) {
  const BlockLists blocks{{0, 4, 8}, {0, 4, 8}, 1, {0, 1, 3}, {1, 0, 1}};
  const Mask mask = Mask::from_blocks(8, 8, {{0, 8, 0, 8, MaskSliceType::full}}, blocks);
  const std::vector<Range> queries = {{2, 3}, {5, 8}};
  const std::vector<Range> keys = {{1, 2}, {3, 4}};
  const Mask sub = mask.sub_mask(queries, keys);
  EXPECT_EQ(*sub.blocks(), (BlockLists{{0, 1, 4}, {0, 2}, 1, {0, 0, 1}, {0}}));
}

TEST(SubMask, RefusesRangesOutOfOrder) {
  const Mask mask = Mask::from_slices(8, 8, {});
  const std::vector<Range> all = {{0, 8}};
  EXPECT_THROW(mask.sub_mask(std::vector<Range>{{4, 6}, {2, 3}}, all), InternalError);
  EXPECT_THROW(mask.sub_mask(all, std::vector<Range>{{0, 4}, {3, 6}}), InternalError);
  EXPECT_THROW(mask.sub_mask(all, std::vector<Range>{{0, 9}}), InternalError);
}

}  // namespace
}  // namespace longca
