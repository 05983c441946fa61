#include "parallel/plan/mask_heads.h"

#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "mask/generators.h"

namespace longca {
namespace {

Mask block_mask(int heads_q, int heads_k, const std::string& block_heads) {
  MaskSpec spec;
  spec.name = "block_sparse";
  spec.tokens = 96;
  spec.block = 16;
  spec.density = 0.4;
  spec.heads_q = heads_q;
  spec.heads_k = heads_k;
  spec.block_heads = block_heads;
  return generate_mask(spec).mask;
}

/// What query head `head` of `heads_q` sees.
std::vector<std::uint8_t> seen(const Mask& mask, int head, int heads_q) {
  return mask.dense(head * mask.heads() / heads_q);
}

void expect_every_part_agrees(const Mask& mask, int heads_q) {
  for (int first = 0; first < heads_q; ++first) {
    for (int count = 1; first + count <= heads_q; ++count) {
      const Mask part = heads_of(mask, first, count, heads_q);
      for (int i = 0; i < count; ++i) {
        EXPECT_EQ(seen(part, i, count), seen(mask, first + i, heads_q))
            << "head " << i << " of " << first << " + " << count;
      }
    }
  }
}

TEST(HeadsOf, HeadsSeeWhatTheySawInTheWhole) {
  expect_every_part_agrees(block_mask(8, 2, "kv"), 8);
  expect_every_part_agrees(block_mask(6, 3, "kv"), 6);
  expect_every_part_agrees(block_mask(4, 2, "query"), 4);
}

TEST(HeadsOf, SharedListsStayShared) {
  const Mask mask = block_mask(8, 2, "kv");
  EXPECT_EQ(heads_of(mask, 0, 4, 8).heads(), 1);
  EXPECT_EQ(heads_of(mask, 5, 3, 8).heads(), 1);
  EXPECT_EQ(heads_of(mask, 2, 4, 8).heads(), 2);
  EXPECT_EQ(heads_of(mask, 1, 5, 8).heads(), 5);
  EXPECT_EQ(heads_of(mask, 0, 8, 8).heads(), 2);
}

TEST(HeadsOf, MasksWithoutBlocksAreTheSameForAllHeads) {
  const Mask causal = Mask::from_slices(16, 16, {{0, 16, 0, 16, MaskSliceType::causal}});
  const Mask part = heads_of(causal, 3, 1, 8);
  EXPECT_EQ(part.heads(), 1);
  EXPECT_EQ(part.dense(0), causal.dense(0));
}

TEST(HeadsOf, HeadsBeyondTheLastAreRefused) {
  EXPECT_THROW(heads_of(block_mask(8, 2, "kv"), 6, 3, 8), InternalError);
}

}  // namespace
}  // namespace longca
