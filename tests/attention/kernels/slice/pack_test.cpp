#include "attention/kernels/slice/planner/pack.h"

#include <gtest/gtest.h>

#include "mask/generators.h"

namespace longca::slice {
namespace {

Mask mask_of(const std::string& name, std::int64_t tokens, const std::string& block_heads = "kv") {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = tokens;
  spec.lengths = "pile";
  spec.heads_q = 8;
  spec.heads_k = 1;
  spec.block = 64;
  spec.block_heads = block_heads;
  return generate_mask(spec).mask;
}

TEST(SlicePack, DividesTheGroup) {
  const Mask mask = mask_of("causal", 4096);
  EXPECT_EQ(choose_pack(mask, 1, 128), 1);
  EXPECT_EQ(choose_pack(mask, 3, 128), 1);
  EXPECT_EQ(6 % choose_pack(mask, 6, 128), 0);
  EXPECT_EQ(choose_pack(Mask::from_slices(0, 0, {}), 8, 128), 1);
  EXPECT_EQ(choose_pack(mask_of("full", 4096), 8, 128), 1);
}

TEST(SlicePack, IsLargeForShortDocuments) {
  EXPECT_GE(choose_pack(mask_of("document", 32 * 1024), 8, 128), 4);
  EXPECT_GE(choose_pack(mask_of("causal_document", 32 * 1024), 8, 128), 4);
}

TEST(SlicePack, LeavesPairsTogetherWhereLargerTilesGainLittle) {
  EXPECT_TRUE(pairs_fit(8, 4, 128));
  EXPECT_FALSE(pairs_fit(8, 8, 128));
  EXPECT_FALSE(pairs_fit(6, 2, 128));
  EXPECT_FALSE(pairs_fit(1, 1, 128));
  EXPECT_FALSE(pairs_fit(8, 4, 64));
  // A window of 1K with the rows' own 16, 32 or 64 keys is 17 sub-tiles, with 128 it is 18.
  const int pack = choose_pack(mask_of("sliding_window_causal", 32 * 1024), 8, 128);
  EXPECT_TRUE(pack == 2 || pack == 4) << pack;
}

TEST(SliceTiling, PairsQueryTilesWhereHeadBlocksMakeNoPairs) {
  EXPECT_TRUE(choose_tiling(mask_of("full", 32 * 1024), 1, 128).row_pairs);
  EXPECT_TRUE(choose_tiling(mask_of("causal", 32 * 1024), 1, 128).row_pairs);
  EXPECT_FALSE(choose_tiling(mask_of("full", 32 * 1024), 8, 128).row_pairs);
  EXPECT_FALSE(choose_tiling(mask_of("full", 32 * 1024), 1, 64).row_pairs);
  // A window of 1K: what is full for 128 rows is not for 256.
  EXPECT_FALSE(choose_tiling(mask_of("sliding_window_causal", 32 * 1024), 1, 128).row_pairs);
  EXPECT_FALSE(choose_tiling(mask_of("block_sparse", 8192), 1, 128).row_pairs);
}

TEST(SlicePack, IsSmallerForMillionsOfTokens) {
  const std::int64_t tokens = 768 * 1024;
  EXPECT_LE(choose_pack(mask_of("document", tokens), 8, 128) * tokens, std::int64_t{4} << 20);
  EXPECT_EQ(choose_pack(mask_of("document", 8 * tokens), 8, 128), 1);
}

TEST(SlicePack, KeepsTheRowsOfATileInOneBlock) {
  EXPECT_EQ(choose_pack(mask_of("block_sparse", 8192), 8, 128), 2);
}

}  // namespace
}  // namespace longca::slice
