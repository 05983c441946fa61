#include "advise/work.h"

#include <gtest/gtest.h>

#include "attention/api/registry.h"
#include "core/error.h"
#include "planted.h"

namespace longca::advise {
namespace {

using testing::case_of;

TEST(MaskFacts, CountsFullAndPartialTilesOverAllQueryHeads) {
  MaskFacts masks;
  const Work work = masks.work(case_of("slice", "causal", 512));
  EXPECT_EQ(work.full_tiles, 64 * 6);
  EXPECT_EQ(work.partial_tiles, 64 * 4);
  EXPECT_EQ(work.square_tiles, 64 * 16);
  EXPECT_EQ(work.rows, 64 * 512);
  EXPECT_EQ(work.keys, 8 * 512);
  EXPECT_EQ(work.longest_row, 4);
  EXPECT_EQ(work.cells, 64.0 * 512 * 513 / 2);
  EXPECT_NEAR(work.density(), 513.0 / 1024, 1e-12);
  EXPECT_NEAR(work.partial_share(), 0.4, 1e-12);
}

TEST(MaskFacts, OfBlockSparseMasksTheHeadsThatDifferAreScaled) {
  Case c = case_of("slice", "block_sparse", 2048);
  c.density = 0.5;
  c.block = 128;
  c.block_heads = "kv";
  MaskFacts masks;
  const Work work = masks.work(c);
  EXPECT_EQ(work.full_tiles, 64 * 16 * 8) << "8 of 16 key blocks for each of 16 query blocks";
  EXPECT_EQ(work.partial_tiles, 0);
}

TEST(MaskFacts, SaysWhyAKernelCannotDoAProblem) {
  MaskFacts masks;
  const Kernel& sdpa = KernelRegistry::global().find("sdpa", DeviceKind::cuda);
  EXPECT_EQ(masks.refusal(sdpa, case_of("sdpa", "causal", 1024)), "");
  EXPECT_NE(masks.refusal(sdpa, case_of("sdpa", "document", 1024)), "");
  Case unknown = case_of("sdpa", "causal", 1024);
  unknown.mask = "absent";
  EXPECT_THROW(masks.work(unknown), InputError);
}

}  // namespace
}  // namespace longca::advise
