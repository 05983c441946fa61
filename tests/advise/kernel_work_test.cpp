#include "advise/kernel_work.h"

#include <gtest/gtest.h>

#include "advise/advisor.h"
#include "attention/api/registry.h"
#include "mask/own_lengths.h"
#include "planted.h"

namespace longca::advise {
namespace {

using testing::case_of;

const Kernel& kernel_of(const Case& c) {
  return KernelRegistry::global().find(c.kernel, DeviceKind::cuda);
}

Case with_heads(Case c, int heads_k) {
  c.heads_k = heads_k;
  return c;
}

/// Bytes per token beside those of the tensors.
double beside_tensors(const Case& c) {
  MaskFacts masks;
  const Work& work = masks.work(c);
  const double all = known_bytes(&kernel_of(c), c, work);
  return (all - known_bytes(nullptr, c, work)) / static_cast<double>(c.tokens);
}

TEST(KnownBytes, AreTheTensorsOfAForwardPass) {
  const Case c = case_of("cudnn", "causal", 8192);
  EXPECT_EQ(beside_tensors(c), 0);
  MaskFacts masks;
  EXPECT_EQ(known_bytes(nullptr, c, masks.work(c)), 8192.0 * (72 * 2 * 128 * 2 + 64 * 4));
}

/// What records of an H200 say: 33,024 and 65,792 bytes per token, of packed documents 98,560.
TEST(KnownBytes, OfABackwardPassCountGradientsOfEachQueryHead) {
  const Case c = case_of("cudnn", "causal", 8192, Pass::backward);
  EXPECT_EQ(beside_tensors(with_heads(c, 64)), 64 * (4 * 128 + 4));
  EXPECT_EQ(beside_tensors(c), 64 * (8 * 128 + 4));
  const Case packed = case_of("cudnn", "causal_document", 8192, Pass::backward);
  EXPECT_EQ(beside_tensors(packed), 64 * (12 * 128 + 4));
  EXPECT_EQ(beside_tensors(with_heads(packed, 64)), 64 * (4 * 128 + 4));
}

TEST(KnownBytes, CountSumsOfKvHeadsAndRowsThatPadDocuments) {
  const Case c = case_of("fa4", "causal", 8192, Pass::backward);
  EXPECT_EQ(beside_tensors(with_heads(c, 64)), 64 * (4 * 128 + 8));
  EXPECT_EQ(beside_tensors(c), 64 * (4 * 128 + 8) + 8 * 8 * 128);
  const Case packed = case_of("fa2", "document", 8192, Pass::backward);
  const double documents = MaskFacts().work(packed).documents;
  EXPECT_GT(documents, 1);
  const double padded = 1 + documents * 128 / 8192;
  EXPECT_NEAR(beside_tensors(packed), 64 * ((4 * 128 + 4) * padded + 4 * 128), 1e-6);
}

/// Peaks of 64:64 heads do not show what a kernel takes where query heads share a KV head.
TEST(KnownBytes, TellThePeakOfOtherHeads) {
  MaskFacts masks;
  std::vector<Record> records;
  const auto peak = [&](const Case& c) { return known_bytes(&kernel_of(c), c, masks.work(c)); };
  for (const char* mask : {"full", "causal", "sliding_window_causal"}) {
    for (const std::int64_t tokens : {2048, 4096, 8192, 16384}) {
      const Case c = with_heads(case_of("fa2", mask, tokens, Pass::backward), 64);
      records.push_back(testing::record_of(c, testing::law_ms(c, 4e-5, 5e-5), peak(c)));
    }
  }
  const Evidence evidence = testing::evidence_of(records);
  Advisor advisor(evidence, masks);
  const Case grouped = case_of("fa2", "causal", 8192, Pass::backward);
  const Advice advice = advisor.advise(grouped, {.kernels = {"fa2"}});
  ASSERT_EQ(advice.choices.size(), 1U);
  ASSERT_TRUE(advice.choices.front().peak_bytes);
  EXPECT_NEAR(advice.choices.front().peak_bytes->value / peak(grouped), 1, 0.01);
  const double tensors = known_bytes(nullptr, grouped, masks.work(grouped));
  const Case same = with_heads(grouped, 64);
  const double of_same = peak(same) / known_bytes(nullptr, same, masks.work(same));
  EXPECT_LT(of_same * tensors / peak(grouped), 0.8) << "by the tensors alone it is a third too low";
}

TEST(KernelWork, SumsOfQueryHeadsPassThroughMemory) {
  MaskFacts masks;
  const auto known_ms = [&](const Case& c) {
    return kernel_work(&kernel_of(c), c, masks).known_ms;
  };
  const Case c = case_of("cudnn", "causal", 8192, Pass::backward);
  const double bytes = 8192.0 * 128 * (64 * 4 + 8 * 4);
  EXPECT_DOUBLE_EQ(known_ms(c), 1e3 * bytes / masks.platform().memory.bytes_per_second);
  EXPECT_EQ(known_ms(with_heads(c, 64)), 0);
  EXPECT_EQ(known_ms(case_of("cudnn", "causal", 8192)), 0) << "a forward pass";
  EXPECT_GT(known_ms(case_of("fa4", "causal", 8192, Pass::backward)), known_ms(c)) << "in float32";
  EXPECT_EQ(known_ms(case_of("flex", "causal", 8192, Pass::backward)), 0) << "in its CTAs";
}

/// 2 query heads of 256 queries and keys: two columns of 2 tiles for both heads, 16 ÷ 7 each, then
/// four rows of 6 ÷ 7. Of three SMs the third takes three of the rows, and one of the others the
/// last, which ends at 22 ÷ 7.
TEST(KernelWork, ColumnsOfAGroupComeBeforeItsRows) {
  MaskFacts masks(3);
  Case c = case_of("flex", "full", 256, Pass::backward);
  c.heads_q = 2;
  c.heads_k = 1;
  const IdleSlots idle = kernel_work(&kernel_of(c), c, masks).idle;
  EXPECT_NEAR(idle.group_gradients, 3 * 22.0 / 7 - 8, 1e-12);
  EXPECT_EQ(idle.tile_columns, 0);
  c.kernel = "cudnn";
  EXPECT_EQ(kernel_work(&kernel_of(c), c, masks).idle.group_gradients, 0);
}

/// Causal tile rows of 1, 2, 3 and 4 tiles of two heads, 20 tiles for two SMs: in their order the
/// last ends at 12, the longest first nothing is idle.
TEST(KernelWork, LongestRowsFirstLeaveLessIdle) {
  MaskFacts masks(2);
  const auto idle_rows = [&](const char* kernel, const char* mask, Pass pass) {
    Case c = case_of(kernel, mask, 512, pass);
    c.heads_q = c.heads_k = 2;
    return kernel_work(&kernel_of(c), c, masks).idle.tile_rows;
  };
  const double in_order = idle_rows("fa2", "causal", Pass::forward);
  EXPECT_GT(in_order, 0);
  EXPECT_EQ(idle_rows("fa3", "causal", Pass::forward), 0);
  EXPECT_EQ(idle_rows("flashmask_native", "causal", Pass::forward), 0);
  EXPECT_EQ(idle_rows("flashmask_native", "causal", Pass::backward), in_order);
  const double other = idle_rows("fa2", "prefix_lm_causal", Pass::forward);
  EXPECT_EQ(idle_rows("fa4", "prefix_lm_causal", Pass::forward), other) << "no window";
}

TEST(KernelWork, CellsAreTestedOncePerIntervalOrAlways) {
  MaskFacts masks;
  const auto tests = [&](const char* kernel, const char* mask) {
    const Case c = case_of(kernel, mask, 16384);
    const Work work = kernel_work(&kernel_of(c), c, masks);
    return work.tested_tiles / work.tiles.partial;
  };
  EXPECT_EQ(tests("fa4", "shared_question"), 2);
  EXPECT_EQ(tests("fa4", "prefix_lm_document"), 1);
  EXPECT_EQ(tests("fa4", "causal_document"), 0) << "by an argument";
  EXPECT_EQ(tests("flex", "shared_question"), 1) << "always for two";
  EXPECT_EQ(tests("fa2", "sliding_window_causal"), 0) << "by an argument";
  EXPECT_EQ(tests("flex", "sliding_window_causal"), 1) << "as any interval";
  EXPECT_EQ(tests("flex", "causal"), 0);
}

/// Documents of 300, 100 and 112 tokens: 3, 1 and 1 tile rows of 9.
TEST(KernelWork, CtasOfTheLongestDocumentAreLaunchedForEach) {
  MaskFacts masks;
  Case c = case_of("cudnn", "causal_document", 512);
  c.lengths = "unequal";
  add_own_lengths(*c.lengths, {.path = {}, .lengths = {300, 100, 112}, .tokens = 512});
  const auto empty = [&](const char* kernel) {
    c.kernel = kernel;
    return kernel_work(&kernel_of(c), c, masks).empty_tile_rows;
  };
  EXPECT_EQ(empty("cudnn"), 64 * (3 * 3 - 5));
  EXPECT_EQ(empty("fa2"), 64 * (3 * 3 - 5));
  EXPECT_EQ(empty("fa4"), 0) << "its scheduler knows how long each is";
  EXPECT_EQ(kernel_work(nullptr, c, masks).empty_tile_rows, 0);
  c.mask = "causal";
  EXPECT_EQ(empty("cudnn"), 0);
}

TEST(KernelWork, CallsMeetThePowerLimitByTheTilesThatAreComputed) {
  MaskFacts masks;
  const auto slowed = [&](const Case& c) { return kernel_work(&kernel_of(c), c, masks).slowed; };
  EXPECT_LT(slowed(case_of("cudnn", "causal", 1024)), 0.001);
  EXPECT_GT(slowed(case_of("cudnn", "causal", 131072)), 0.99);
  const Case window = case_of("fa2", "sliding_window", 16384, Pass::backward);
  EXPECT_LT(slowed(window), 0.1);
  EXPECT_GT(slowed(case_of("cudnn", "sliding_window", 16384, Pass::backward)), 0.5) << "all tiles";
  const Case c = case_of("naive", "full", 16384);
  const Work work = kernel_work(nullptr, c, masks);
  const double seconds = work.square_tiles * 4 * kWorkTile * kWorkTile * c.head_dim /
                         masks.platform().kernel.forward.tile_flops_per_second;
  EXPECT_DOUBLE_EQ(work.slowed, masks.platform().call.forward.power.reached(seconds));
  Case on_cpu = c;
  on_cpu.device = "cpu";
  EXPECT_EQ(kernel_work(nullptr, on_cpu, masks).slowed, 0);
}

/// Tiles of 128 rows touch two rows of blocks of 64 tokens; of 8 heads they are 16 queries.
TEST(KernelWork, BlocksAreCountedInTheKernelsTiles) {
  MaskFacts masks;
  Case c = case_of("slice", "block_sparse", 8192);
  c.block = 64;
  c.density = 0.2;
  c.block_heads = "kv";
  const auto share = [&](const Case& of) {
    const Work work = kernel_work(&kernel_of(of), of, masks);
    EXPECT_EQ(work.tiles.partial, 0);
    return work.tiles.full / work.square_tiles;
  };
  EXPECT_NEAR(share(c), 0.2, 0.01);
  EXPECT_NEAR(share(with_heads(c, 64)), 1 - 0.8 * 0.8, 0.01);
  c.kernel = "fa2_sparse_native";
  EXPECT_GT(kernel_work(&kernel_of(c), c, masks).tiles.partial, 0) << "it says no tile";
}

/// flex looks each cell up where blocks differ in size, and what it takes for others does not tell.
TEST(KernelWork, OfAPathOfItsOwnOtherMasksTellNothing) {
  MaskFacts masks;
  std::vector<Record> records;
  const auto of_blocks = [](const char* kernel, const char* mask, std::int64_t tokens) {
    Case c = case_of(kernel, mask, tokens);
    c.block = 128;
    c.density = 0.5;
    c.block_heads = "kv";
    return c;
  };
  for (const char* kernel : {"flex", "slice"}) {
    for (std::int64_t tokens = 1024; tokens <= 9 * 1024; tokens += 512) {
      const Case c = of_blocks(kernel, "block_sparse", tokens);
      records.push_back(testing::record_of(c, testing::law_ms(c, 4e-5, 5e-5)));
    }
  }
  const Evidence evidence = testing::evidence_of(records);
  Advisor advisor(evidence, masks);
  const Case uneven = of_blocks("", "block_sparse_variable", 4096);
  const AdviceOptions options{.kernels = {"flex", "slice"}};
  const Advice advice = advisor.advise(uneven, options);
  ASSERT_EQ(advice.choices.size(), 1U);
  EXPECT_EQ(advice.choices.front().c.kernel, "slice");
  ASSERT_EQ(advice.unknown.size(), 1U);
  EXPECT_EQ(advice.unknown.front().kernel, "flex");
  EXPECT_EQ(advisor.advise(of_blocks("", "block_sparse", 4200), options).choices.size(), 2U);
}

}  // namespace
}  // namespace longca::advise
