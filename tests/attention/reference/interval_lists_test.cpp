#include "attention/reference/interval_lists.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "attention/reference/faulty_masks.h"
#include "mask/generators.h"

namespace longca {
namespace {

/// One head of a mask as a dense matrix, from the owner's side.
struct Dense {
  Dense(const Mask& mask, int head, TileOwner owner)
      : queries(owner == TileOwner::queries),
        tokens(queries ? mask.q_tokens() : mask.k_tokens()),
        partners(queries ? mask.k_tokens() : mask.q_tokens()),
        k_tokens(mask.k_tokens()),
        cells(mask.dense(head)) {}

  bool allows(std::int64_t token, std::int64_t partner) const {
    const std::int64_t q = queries ? token : partner;
    const std::int64_t k = queries ? partner : token;
    return cells[static_cast<std::size_t>(q * k_tokens + k)] != 0;
  }
  std::int64_t cells_of(std::int64_t tile, std::int64_t partner_tile) const {
    std::int64_t count = 0;
    for (std::int64_t t = tile * kTile; t < std::min((tile + 1) * kTile, tokens); ++t) {
      for (std::int64_t p = partner_tile * kTile;
           p < std::min((partner_tile + 1) * kTile, partners); ++p) {
        count += allows(t, p);
      }
    }
    return count;
  }

  bool queries;
  std::int64_t tokens, partners, k_tokens;
  std::vector<std::uint8_t> cells;
};

void expect_lists(const IntervalLists& lists, std::size_t part, const Dense& dense) {
  for (std::int64_t token = 0; token < dense.tokens; ++token) {
    std::vector<bool> seen(static_cast<std::size_t>(dense.partners));
    const auto list =
        static_cast<std::size_t>(lists.list_of[part * static_cast<std::size_t>(dense.tokens) +
                                               static_cast<std::size_t>(token)]);
    std::int32_t end = -1;
    for (auto i = lists.list_offsets[list]; i < lists.list_offsets[list + 1]; ++i) {
      const TokenInterval& interval = lists.intervals[static_cast<std::size_t>(i)];
      EXPECT_GT(interval.begin, end) << "ascending and apart";
      end = interval.end;
      std::fill(seen.begin() + interval.begin, seen.begin() + interval.end, true);
    }
    for (std::int64_t p = 0; p < dense.partners; ++p) {
      ASSERT_EQ(seen[static_cast<std::size_t>(p)], dense.allows(token, p)) << token << ", " << p;
    }
  }
}

/// Returns the number of tiles that meet each tile of the owner.
std::vector<std::int64_t> expect_runs(const IntervalLists& lists, std::size_t part,
                                      const Dense& dense) {
  const std::int64_t tiles = tile_count(dense.tokens);
  std::vector<std::int64_t> pairs;
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    std::vector<int> found(static_cast<std::size_t>(tile_count(dense.partners)), 0);
    const std::size_t at = part * static_cast<std::size_t>(tiles) + static_cast<std::size_t>(tile);
    for (auto r = lists.run_offsets[at]; r < lists.run_offsets[at + 1]; ++r) {
      const PartnerRun& run = lists.runs[static_cast<std::size_t>(r)];
      for (auto t = run.begin; t < run.end; ++t) found[static_cast<std::size_t>(t)] = 1 + run.full;
    }
    pairs.push_back(0);
    for (std::size_t t = 0; t < found.size(); ++t) {
      const std::int64_t cells = dense.cells_of(tile, static_cast<std::int64_t>(t));
      EXPECT_EQ(found[t], cells == 0 ? 0 : cells == kTile * kTile ? 2 : 1) << tile << ", " << t;
      pairs.back() += cells > 0;
    }
  }
  return pairs;
}

void expect_order(const IntervalLists& lists, std::size_t part,
                  const std::vector<std::int64_t>& pairs) {
  const auto begin = lists.order.begin() + static_cast<std::ptrdiff_t>(part * pairs.size());
  std::vector<std::int32_t> order(begin, begin + static_cast<std::ptrdiff_t>(pairs.size()));
  EXPECT_TRUE(std::ranges::is_sorted(order, [&](std::int32_t a, std::int32_t b) {
    return pairs[static_cast<std::size_t>(a)] > pairs[static_cast<std::size_t>(b)];
  }));
  std::ranges::sort(order);
  std::vector<std::int32_t> all(pairs.size());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(order, all);
}

void expect_same_as_dense(const Mask& mask) {
  std::vector<int> heads(static_cast<std::size_t>(mask.heads()));
  std::iota(heads.rbegin(), heads.rend(), 0);  // any order of heads
  for (const TileOwner owner : {TileOwner::queries, TileOwner::keys}) {
    SCOPED_TRACE(owner == TileOwner::queries ? "queries" : "keys");
    const IntervalLists lists = make_interval_lists(mask, owner, heads);
    std::int64_t pairs = 0;
    for (std::size_t part = 0; part < heads.size(); ++part) {
      const Dense dense(mask, heads[part], owner);
      EXPECT_EQ(lists.tokens, dense.tokens);
      expect_lists(lists, part, dense);
      const std::vector<std::int64_t> of_tiles = expect_runs(lists, part, dense);
      expect_order(lists, part, of_tiles);
      pairs = std::accumulate(of_tiles.begin(), of_tiles.end(), pairs);
    }
    EXPECT_EQ(lists.pairs, pairs);
  }
}

TEST(IntervalLists, OfEveryMaskAreTheDenseOnes) {
  for (const MaskTraits& traits : mask_table()) {
    for (const std::int64_t tokens : {1, 64, 65, 300}) {
      SCOPED_TRACE(std::string(traits.name) + " of " + std::to_string(tokens));
      MaskSpec spec;
      spec.name = traits.name;
      spec.tokens = tokens;
      spec.window = std::min<std::int64_t>(test::kSmallWindow, tokens);
      spec.block_tokens = 96;
      spec.heads_q = 4;
      spec.heads_k = 2;
      spec.block = 24;
      spec.block_heads = "query";
      expect_same_as_dense(generate_mask(spec).mask);
    }
  }
}

TEST(IntervalLists, OfOtherShapes) {
  expect_same_as_dense(Mask::from_slices(130, 257, {{0, 130, 0, 257, MaskSliceType::causal}}));
  expect_same_as_dense(
      Mask::from_slices(257, 70, {{3, 200, 5, 66, MaskSliceType::inverse_causal}}));
  expect_same_as_dense(Mask::from_slices(200, 200, {{70, 80, 10, 20, MaskSliceType::bi_causal}}));
  expect_same_as_dense(Mask::from_slices(100, 100, {}));
  expect_same_as_dense(Mask::from_slices(
      200, 200, {{0, 200, 0, 50, MaskSliceType::full}, {50, 200, 50, 200, MaskSliceType::causal}}));
  expect_same_as_dense(test::without_tile(test::small_mask("causal", 200), 4, 2, 1, 0));
}

TEST(IntervalLists, WithoutTokensThereIsNothing) {
  const Mask mask = Mask::from_slices(0, 64, {});
  const int head = 0;
  const IntervalLists queries = make_interval_lists(mask, TileOwner::queries, {&head, 1});
  EXPECT_TRUE(queries.list_of.empty() && queries.order.empty());
  const IntervalLists keys = make_interval_lists(mask, TileOwner::keys, {&head, 1});
  EXPECT_EQ(keys.pairs, 0);
  EXPECT_EQ(keys.order.size(), 1);
}

TEST(IntervalLists, OfRowsThatSeeTheSameAreShared) {
  const int head = 0;
  const auto lists_of = [&](const Mask& mask) {
    return make_interval_lists(mask, TileOwner::queries, {&head, 1}).list_offsets.size() - 1;
  };
  EXPECT_EQ(lists_of(test::small_mask("full", 640)), 10);
  EXPECT_EQ(lists_of(test::documents({100, 540}, MaskSliceType::full)), 11);
  EXPECT_EQ(lists_of(test::small_mask("causal", 640)), 640);
}

}  // namespace
}  // namespace longca
