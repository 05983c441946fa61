#include "parallel/partition/sharding.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "mask/generators.h"
#include "mask/oracle.h"

namespace longca {
namespace {

constexpr ShardKind kKinds[] = {ShardKind::contiguous, ShardKind::zigzag,
                                ShardKind::document_zigzag, ShardKind::balanced,
                                ShardKind::document_balanced};

Mask causal(std::int64_t tokens) {
  return Mask::from_slices(tokens, tokens, {{0, tokens, 0, tokens, MaskSliceType::causal}});
}

/// Documents, zero-length ones among them, that fill `tokens`.
std::vector<std::int64_t> random_lengths(std::int64_t tokens) {
  std::vector<std::int64_t> lengths;
  for (int documents = *rc::gen::inRange(0, 6); documents > 0; --documents) {
    lengths.push_back(*rc::gen::inRange<std::int64_t>(0, tokens + 1));
    tokens -= lengths.back();
  }
  lengths.push_back(tokens);
  return lengths;
}

RC_GTEST_PROP(Sharding, EveryTokenIsOwnedOnce, ()) {
  const auto tokens = *rc::gen::inRange<std::int64_t>(0, 200);
  const int cp_ranks = *rc::gen::inRange(1, 17);
  const ShardKind kind = *rc::gen::elementOf(std::vector(std::begin(kKinds), std::end(kKinds)));
  const auto chunk = *rc::gen::inRange<std::int64_t>(0, 9);
  const Sharding sharding(kind, causal(tokens), random_lengths(tokens), cp_ranks, chunk);
  std::vector<int> owners(static_cast<std::size_t>(tokens), 0);
  for (int p = 0; p < cp_ranks; ++p) {
    std::int64_t previous_end = -1;
    std::int64_t own = 0;
    for (const Range range : sharding.ranges(p)) {
      RC_ASSERT(!range.empty());
      RC_ASSERT(range.begin > previous_end);  // ascending, not touching
      previous_end = range.end;
      own += range.size();
      for (std::int64_t t = range.begin; t < range.end; ++t)
        ++owners.at(static_cast<std::size_t>(t));
    }
    RC_ASSERT(sharding.tokens(p) == own);
    RC_ASSERT(sharding.rows(p) >= own);
  }
  RC_ASSERT(std::all_of(owners.begin(), owners.end(), [](int n) { return n == 1; }));
}

RC_GTEST_PROP(Sharding, RowsAreEqualWhereTheKindPads, ()) {
  const auto tokens = *rc::gen::inRange<std::int64_t>(0, 200);
  const int cp_ranks = *rc::gen::inRange(1, 17);
  const auto lengths = random_lengths(tokens);
  const Sharding sharding(ShardKind::document_zigzag, causal(tokens), lengths, cp_ranks);
  std::int64_t rows = 0;
  for (int p = 0; p < cp_ranks; ++p) {
    RC_ASSERT(sharding.rows(p) == sharding.rows(0));
    rows += sharding.rows(p);
  }
  std::int64_t padded = 0;
  for (const auto length : lengths)
    padded += (length + 2 * cp_ranks - 1) / (2 * cp_ranks) * 2 * cp_ranks;
  RC_ASSERT(rows == padded);
}

RC_GTEST_PROP(Sharding, PartsOfAPositionAreConsecutiveAndEven, ()) {
  const auto ranges = oracle::random_ranges(*rc::gen::inRange<std::int64_t>(0, 60));
  const int parts = *rc::gen::inRange(1, 9);
  const auto tokens_of = [](const std::vector<Range>& list) {
    std::vector<std::int64_t> tokens;
    for (const Range range : list) {
      for (std::int64_t t = range.begin; t < range.end; ++t) tokens.push_back(t);
    }
    return tokens;
  };
  std::vector<std::int64_t> joined;
  std::vector<std::size_t> sizes;
  for (int member = 0; member < parts; ++member) {
    const auto mine = tokens_of(split_ranges(ranges, parts, member));
    sizes.push_back(mine.size());
    joined.insert(joined.end(), mine.begin(), mine.end());
  }
  RC_ASSERT(joined == tokens_of(ranges));
  const auto [least, most] = std::minmax_element(sizes.begin(), sizes.end());
  RC_ASSERT(*most - *least <= 1U);
}

TEST(Sharding, ContiguousPartsDifferByOneToken) {
  const Sharding sharding(ShardKind::contiguous, causal(10), {}, 4);
  EXPECT_EQ(sharding.ranges(0), (std::vector<Range>{{0, 3}}));
  EXPECT_EQ(sharding.ranges(1), (std::vector<Range>{{3, 6}}));
  EXPECT_EQ(sharding.ranges(3), (std::vector<Range>{{8, 10}}));
}

TEST(Sharding, ZigzagGivesHeadAndTail) {
  const Sharding sharding(ShardKind::zigzag, causal(16), {}, 4);
  EXPECT_EQ(sharding.ranges(0), (std::vector<Range>{{0, 2}, {14, 16}}));
  EXPECT_EQ(sharding.ranges(2), (std::vector<Range>{{4, 6}, {10, 12}}));
  EXPECT_EQ(sharding.ranges(3), (std::vector<Range>{{6, 10}}));
  EXPECT_DOUBLE_EQ(area_imbalance(causal(16), sharding), 1.0);
}

TEST(Sharding, DocumentZigzagPadsEachDocument) {
  const std::vector<std::int64_t> lengths = {6, 0, 5};
  const Sharding sharding(ShardKind::document_zigzag, causal(11), lengths, 2);
  EXPECT_EQ(sharding.ranges(0), (std::vector<Range>{{0, 2}, {6, 8}}));
  EXPECT_EQ(sharding.ranges(1), (std::vector<Range>{{2, 6}, {8, 11}}));
  EXPECT_EQ(sharding.tokens(0), 4);
  EXPECT_EQ(sharding.rows(0), 8);
  EXPECT_EQ(sharding.rows(1), 8);
}

TEST(Sharding, BalancedAssignsCausalChunksAsZigzag) {
  const Sharding balanced(ShardKind::balanced, causal(4096), {}, 8);
  const Sharding zigzag(ShardKind::zigzag, causal(4096), {}, 8);
  EXPECT_EQ(balanced.chunk(), 256);
  for (int p = 0; p < 8; ++p) EXPECT_EQ(balanced.ranges(p), zigzag.ranges(p));
}

TEST(Sharding, BalancedKeepsEvenMasksInOnePiece) {
  const Mask full = Mask::from_slices(4096, 4096, {{0, 4096, 0, 4096, MaskSliceType::full}});
  const Sharding sharding(ShardKind::balanced, full, {}, 8);
  for (int p = 0; p < 8; ++p) EXPECT_EQ(sharding.ranges(p).size(), 1U);
}

TEST(Sharding, BalancedAssignsAsManyChunksToEach) {
  const Sharding sharding(ShardKind::balanced, causal(1000), {}, 3, 10);
  for (int p = 0; p < 3; ++p) {
    EXPECT_GE(sharding.tokens(p), 330);
    EXPECT_LE(sharding.tokens(p), 340);
  }
}

MaskSpec spec_of(const std::string& mask, std::int64_t tokens) {
  MaskSpec spec;
  spec.name = mask;
  spec.tokens = tokens;
  spec.density = 0.1;
  return spec;
}

class EveryMask : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryMask, IsBalancedAt64Positions) {
  for (const std::int64_t tokens : {std::int64_t{64} << 13, std::int64_t{1} << 20}) {
    const GeneratedMask mask = generate_mask(spec_of(GetParam(), tokens));
    for (const ShardKind kind : {ShardKind::balanced, ShardKind::document_balanced}) {
      const Sharding sharding(kind, mask.mask, mask.lengths, 64);
      const double imbalance = area_imbalance(mask.mask, sharding);
      EXPECT_LE(imbalance, 1.05) << to_string(kind) << " of " << tokens << " tokens";
      RecordProperty(fmt::format("imbalance_{}_{}", to_string(kind), tokens),
                     fmt::format("{:.4f}", imbalance));
    }
  }
}

std::vector<std::string> mask_names() {
  std::vector<std::string> names;
  for (const MaskTraits& traits : mask_table()) names.push_back(traits.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Sharding, EveryMask, ::testing::ValuesIn(mask_names()),
                         [](const auto& mask) { return mask.param; });

TEST(Sharding, NamesAreReadBack) {
  for (const ShardKind kind : kKinds) EXPECT_EQ(parse_shard_kind(to_string(kind)), kind);
  EXPECT_EQ(shard_kind_names().size(), 5U);
  const std::string there_are =
      "; there are contiguous, zigzag, document_zigzag, balanced, document_balanced";
  for (const auto& [name, nearest] :
       {std::pair{"zigzak", " (did you mean 'zigzag'?)"}, {"zig", ""}}) {
    try {
      parse_shard_kind(name);
      FAIL() << "read";
    } catch (const InputError& error) {
      EXPECT_EQ(error.what(), "unknown shard '" + std::string(name) + "'" + nearest + there_are);
    }
  }
}

TEST(Sharding, CpRanksBelowOneAreRefused) {
  EXPECT_THROW(Sharding(ShardKind::zigzag, causal(8), {}, 0), InputError);
}

}  // namespace
}  // namespace longca
