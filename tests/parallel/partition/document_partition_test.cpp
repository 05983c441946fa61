#include "parallel/partition/document_partition.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "mask/generators.h"
#include "parallel/partition/partition_cost.h"
#include "parallel/partition/sharding.h"
#include "parallel/partition/time_rebalance.h"
#include "parallel/schemes/build/seen_keys.h"

namespace longca {
namespace {

GeneratedMask mask_of(const std::string& name, std::int64_t tokens, std::uint64_t seed = 42) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = tokens;
  spec.seed = seed;
  spec.lengths = "prolong64k";
  return generate_mask(spec);
}

std::int64_t size_of(const std::vector<Range>& ranges) {
  std::int64_t size = 0;
  for (const Range range : ranges) size += range.size();
  return size;
}

/// Keys that come to the CP ranks from others.
std::int64_t foreign_keys(const Mask& mask, const Sharding& sharding) {
  const SeenKeys seen(mask);
  std::int64_t foreign = 0;
  for (int p = 0; p < sharding.cp_ranks(); ++p) {
    const std::vector<Range> own = sharding.ranges(p);
    const std::vector<Range> keys = seen.by(own);
    foreign += size_of(keys) - size_of(common_ranges(keys, own));
  }
  return foreign;
}

/// Documents of 1 to `longest` tokens, causal or full, that fill `tokens`.
GeneratedMask random_documents(std::int64_t tokens, std::int64_t longest) {
  GeneratedMask generated = {Mask::from_slices(0, 0, {}), {}, {}, {}, {}};
  std::vector<MaskSlice> slices;
  for (std::int64_t begin = 0; begin < tokens;) {
    const auto length = std::min(tokens - begin, *rc::gen::inRange<std::int64_t>(1, longest + 1));
    const MaskSliceType type = *rc::gen::element(MaskSliceType::causal, MaskSliceType::full);
    slices.push_back({begin, begin + length, begin, begin + length, type});
    generated.lengths.push_back(length);
    begin += length;
  }
  generated.mask = Mask::from_slices(tokens, tokens, std::move(slices));
  return generated;
}

/// Checks that each token is assigned once, and as many to each CP rank (±1).
void check_tokens(const std::vector<std::vector<Range>>& assigned, std::int64_t tokens) {
  const auto cp_ranks = std::ssize(assigned);
  std::vector<int> owners(static_cast<std::size_t>(tokens), 0);
  for (const std::vector<Range>& ranges : assigned) {
    const std::int64_t own = size_of(ranges);
    RC_ASSERT(own == tokens / cp_ranks || own == (tokens + cp_ranks - 1) / cp_ranks);
    for (const Range range : ranges) {
      for (std::int64_t t = range.begin; t < range.end; ++t) ++owners[static_cast<std::size_t>(t)];
    }
  }
  RC_ASSERT(std::all_of(owners.begin(), owners.end(), [](int n) { return n == 1; }));
}

Sharding shard(const Mask& mask, int cp_ranks, PartitionAim aim) {
  return {ShardKind::document_balanced, mask, {}, cp_ranks, 0, aim};
}

double price(const Mask& mask, const Sharding& sharding) {
  std::vector<std::vector<Range>> assigned;
  for (int p = 0; p < sharding.cp_ranks(); ++p) assigned.push_back(sharding.ranges(p));
  const PartitionCost cost(mask);
  return cost.times().price_of(cost.of(assigned));
}

RC_GTEST_PROP(DocumentPartition, IsEqualInTokensAndAboutInArea, ()) {
  const auto tokens = *rc::gen::inRange<std::int64_t>(1, 400);
  const auto longest = *rc::gen::inRange<std::int64_t>(1, 100);
  const GeneratedMask documents = random_documents(tokens, longest);
  const int cp_ranks = *rc::gen::inRange(1, 17);
  const Sharding balanced(ShardKind::balanced, documents.mask, {}, cp_ranks);
  const double imbalance = std::max(area_imbalance(documents.mask, balanced), 1.0);
  const PartitionAim aim = *rc::gen::element(PartitionAim::equal_area, PartitionAim::equal_time);
  const auto assigned = partition_documents(documents.mask, cp_ranks, aim);
  RC_CLASSIFY(!assigned.empty(), "assigned");
  if (assigned.empty()) return;
  RC_ASSERT(std::ssize(assigned) == cp_ranks);
  check_tokens(assigned, tokens);
  const bool may_drift = aim == PartitionAim::equal_time && cp_ranks <= 8;
  RC_ASSERT(area_imbalance(documents.mask, shard(documents.mask, cp_ranks, aim)) <=
            imbalance + (may_drift ? kMaxDrift : 0.02) + 1e-4);
}

TEST(DocumentPartition, IsTheSameEveryTime) {
  const Mask mask = mask_of("causal_document", 32768).mask;
  const auto assigned = partition_documents(mask, 4, PartitionAim::equal_time);
  EXPECT_FALSE(assigned.empty());
  EXPECT_EQ(assigned, partition_documents(mask, 4, PartitionAim::equal_time));
}

RC_GTEST_PROP(DocumentPartition, ForEqualTimeEndsNoLaterThanForEqualArea, ()) {
  const Mask mask = random_documents(*rc::gen::inRange<std::int64_t>(10, 120),
                                     *rc::gen::inRange<std::int64_t>(5, 80))
                        .mask;
  const int cp_ranks = *rc::gen::inRange(2, 5);
  const double time = price(mask, shard(mask, cp_ranks, PartitionAim::equal_time));
  RC_ASSERT(time <= 1.0001 * price(mask, shard(mask, cp_ranks, PartitionAim::equal_area)));
}

TEST(DocumentPartition, ForEqualTimeEndsEarlierWhereKeysTravel) {
  for (const std::string name : {"document", "causal_document"}) {
    const bool mask_is_causal = name == "causal_document";
    for (const int cp_ranks : {2, 4, 8}) {
      double time = 0;
      double area = 0;
      for (const std::uint64_t seed : {0, 3, 42}) {
        const Mask mask = mask_of(name, std::int64_t{cp_ranks} * 8192, seed).mask;
        const Sharding assigned = shard(mask, cp_ranks, PartitionAim::equal_time);
        const double own = price(mask, assigned);
        const double other = price(mask, shard(mask, cp_ranks, PartitionAim::equal_area));
        EXPECT_LE(own, other) << name << ' ' << cp_ranks << ' ' << seed;
        EXPECT_LE(area_imbalance(mask, assigned), 1 + kMaxDrift) << name << ' ' << seed;
        time += own;
        area += other;
      }
      // Where areas alone decide, as in some of these, there is nothing to gain.
      const double end = !mask_is_causal ? 1.0 : cp_ranks == 2 ? 0.997 : 0.98;
      EXPECT_LE(time, end * area) << name << " over " << cp_ranks;
    }
  }
}

TEST(DocumentPartition, LeavesMasksThatCannotBeCutToBalanced) {
  for (const char* name : {"full", "causal", "sliding_window", "global_sliding_window",
                           "prefix_lm_causal", "block_sparse"}) {
    const GeneratedMask mask = mask_of(name, 8192);
    EXPECT_TRUE(partition_documents(mask.mask, 4, PartitionAim::equal_time).empty()) << name;
    const Sharding own(ShardKind::document_balanced, mask.mask, mask.lengths, 4);
    const Sharding balanced(ShardKind::balanced, mask.mask, mask.lengths, 4);
    EXPECT_EQ(own.chunk(), balanced.chunk()) << name;
    for (int p = 0; p < 4; ++p) EXPECT_EQ(own.ranges(p), balanced.ranges(p)) << name;
  }
}

TEST(DocumentPartition, NeedsAPositionAndATokenForEach) {
  const GeneratedMask mask = mask_of("document", 8192);
  EXPECT_TRUE(partition_documents(mask.mask, 1, PartitionAim::equal_area).empty());
  EXPECT_TRUE(
      partition_documents(mask_of("document", 3).mask, 4, PartitionAim::equal_area).empty());
}

TEST(DocumentPartition, KeepsDocumentsThatFitWhole) {
  const Mask mask = Mask::from_slices(8, 8,
                                      {{0, 1, 0, 1, MaskSliceType::full},
                                       {1, 4, 1, 4, MaskSliceType::full},
                                       {4, 7, 4, 7, MaskSliceType::full},
                                       {7, 8, 7, 8, MaskSliceType::full}});
  const Sharding sharding(ShardKind::document_balanced, mask, {}, 2);
  EXPECT_EQ(foreign_keys(mask, sharding), 0);
  EXPECT_EQ(sharding.tokens(0), 4);
  EXPECT_DOUBLE_EQ(area_imbalance(mask, sharding), 1.0);
}

/// As many tokens to each without a document that is cut: of some sixty, two or three are swapped.
TEST(DocumentPartition, CutsNoneForTheSakeOfEqualTokens) {
  for (const std::uint64_t seed : {1, 7}) {
    for (const int cp_ranks : {2, 4}) {
      const GeneratedMask mask = mask_of("causal_document", std::int64_t{cp_ranks} * 8192, seed);
      const Sharding sharding(ShardKind::document_balanced, mask.mask, {}, cp_ranks);
      EXPECT_EQ(foreign_keys(mask.mask, sharding), 0) << seed << " over " << cp_ranks;
      for (int p = 0; p < cp_ranks; ++p) EXPECT_EQ(sharding.tokens(p), 8192);
      EXPECT_LE(area_imbalance(mask.mask, sharding), 1.02) << seed << " over " << cp_ranks;
    }
  }
}

/// Of prolong64k, half of which have 400 tokens or fewer.
TEST(DocumentPartition, LetsFewerKeysTravelThanBalanced) {
  for (const char* name : {"document", "causal_document", "prefix_lm_document"}) {
    for (const int cp_ranks : {2, 4, 8}) {
      std::int64_t own = 0;
      std::int64_t balanced = 0;
      for (const std::uint64_t seed : {42, 1, 7}) {
        const GeneratedMask mask = mask_of(name, std::int64_t{cp_ranks} * 8192, seed);
        const Sharding sharding(ShardKind::document_balanced, mask.mask, {}, cp_ranks);
        own += foreign_keys(mask.mask, sharding);
        balanced += foreign_keys(mask.mask, Sharding(ShardKind::balanced, mask.mask, {}, cp_ranks));
        EXPECT_LE(area_imbalance(mask.mask, sharding), 1.025) << name << ' ' << seed;
      }
      EXPECT_LT(static_cast<double>(own), 0.9 * static_cast<double>(balanced))
          << name << " over " << cp_ranks;
    }
  }
}

}  // namespace
}  // namespace longca
