#include "advise/known_bytes.h"

#include <gtest/gtest.h>

#include "advise/advisor.h"
#include "attention/api/registry.h"
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
  EXPECT_NEAR(beside_tensors(packed), 64 * (8 * 128 + 4) * (1 + documents * 128 / 8192), 1e-6);
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

}  // namespace
}  // namespace longca::advise
