#include "mask/empty_rows.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "mask/generators.h"
#include "mask/oracle.h"

namespace longca {
namespace {

std::int64_t counted(const Mask& mask) {
  std::int64_t count = 0;
  for (int head = 0; head < mask.heads(); ++head) {
    for (std::int64_t q = 0; q < mask.q_tokens(); ++q) {
      count += mask.key_intervals(head, q).empty() ? 1 : 0;
    }
  }
  return count;
}

RC_GTEST_PROP(RowsWithoutKeys, AreThoseWhoseIntervalsAreEmpty, ()) {
  const oracle::RandomMask random = oracle::random_mask();
  if (random.mask.blocks() == nullptr) return;
  RC_ASSERT(rows_without_keys(random.mask) == counted(random.mask));
}

TEST(RowsWithoutKeys, OfCausalBlocks) {
  MaskSpec spec;
  spec.name = "block_sparse_variable";
  spec.tokens = 300;
  spec.block = 40;
  spec.heads_q = spec.heads_k = 3;
  spec.density = 0.1;
  EXPECT_EQ(rows_without_keys(generate_mask(spec).mask), 0);
  spec.block_causal = true;
  const Mask mask = generate_mask(spec).mask;
  EXPECT_EQ(rows_without_keys(mask), counted(mask));
  EXPECT_GT(counted(mask), 0) << "or this test shows nothing";
}

}  // namespace
}  // namespace longca
