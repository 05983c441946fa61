#include "attention/kernels/slice/planner/tile_lists.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "attention/kernels/slice/random_masks.h"
#include "attention/kernels/slice/visits.h"
#include "mask/generators.h"

namespace longca::slice {
namespace {

const PartialTile& partial_of(const TileLists& lists, const QueryTile& tile, std::int32_t i) {
  return lists.partial[static_cast<std::size_t>(tile.partial_begin) + static_cast<std::size_t>(i)];
}

/// The fewest sub-tiles that cover the keys that rows of [begin, end) see.
std::int64_t fewest_halves(const std::vector<std::uint8_t>& dense, std::int64_t keys, Range rows) {
  std::int64_t sub_tiles = 0;
  for (std::int64_t k = 0; k < keys;) {
    bool seen = false;
    for (std::int64_t q = rows.begin; q < rows.end; ++q) {
      seen |= dense[static_cast<std::size_t>(q * keys + k)] != 0;
    }
    sub_tiles += seen;
    k += seen ? kSubTileKeys : 1;
  }
  return sub_tiles;
}

std::int64_t halves_of(const TileLists& lists, const QueryTile& tile) {
  std::int64_t sub_tiles = 2 * tile.full_tiles;
  const PartialTile* before = nullptr;
  for (std::int32_t i = 0; i < tile.partial_count; ++i) {
    const PartialTile& partial = partial_of(lists, tile, i);
    const bool again = before != nullptr && before->k_begin[0] == partial.k_begin[0];
    before = &partial;
    if (!again) sub_tiles += partial.k_begin[1] == kAbsent ? 1 : 2;
  }
  return sub_tiles;
}

Tiling random_tiling() {
  return {*rc::gen::element(1, 2, 4, 8), *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>()};
}

RC_GTEST_PROP(SliceTileLists, VisitEveryAllowedCellOnceAndNoOther, ()) {
  const Mask mask = random_long_mask();
  const TileLists lists = make_tile_lists(mask, random_tiling());
  RC_ASSERT(lists.list_heads == mask.heads());
  RC_ASSERT(lists.tiles.size() ==
            static_cast<std::size_t>(lists.list_heads * lists.tiles_per_list));
  for (int list = 0; list < mask.heads(); ++list) {
    const Visits visits(lists, list, mask.q_tokens(), mask.k_tokens());
    RC_ASSERT(visits.faults() == 0);
    RC_ASSERT(visits.cells() == mask.dense(list));
  }
}

RC_GTEST_PROP(SliceTileLists, TakeAsFewHalvesAsCoverTheKeys, ()) {
  const Mask mask = random_long_mask();
  const TileLists lists = make_tile_lists(mask, random_tiling());
  const int together = lists.tiling.tiles();
  for (std::int64_t list = 0; list < lists.list_heads; ++list) {
    const std::vector<std::uint8_t> dense = mask.dense(static_cast<int>(list));
    for (std::int64_t i = 0; i < lists.tiles_per_list; i += together) {
      const auto at = static_cast<std::size_t>(list * lists.tiles_per_list + i);
      const QueryTile& tile = lists.tiles[at];
      const QueryTile& last = lists.tiles[at + static_cast<std::size_t>(together) - 1];
      const Range rows = {tile.row_begin, last.row_end};
      const std::int64_t fewest = fewest_halves(dense, mask.k_tokens(), rows);
      RC_ASSERT(halves_of(lists, tile) <= fewest);
      if (lists.joints.empty()) RC_ASSERT(halves_of(lists, tile) == fewest);
    }
  }
}

/// What TMA relies on, which loads kJointKeys keys at a time.
RC_GTEST_PROP(SliceTileLists, JoinSubTilesWhereTheyCanBeLoaded, ()) {
  Tiling tiling = random_tiling();
  tiling.joins = true;
  const TileLists lists = make_tile_lists(random_long_mask(), tiling);
  RC_ASSERT(lists.joints.empty() || lists.joints.size() == lists.partial.size());
  for (std::size_t i = 0; i < lists.joints.size(); ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      const Joint joint = lists.joints[i].joint[j];
      if (!joint.exists()) continue;
      RC_ASSERT(joint.cut() > 0 && joint.cut() < kSubTileKeys && joint.skip() != 0);
      RC_ASSERT(lists.partial[i].k_begin[j] >= 0);
      RC_ASSERT(lists.partial[i].k_begin[j] + joint.cut() + joint.skip() >= 0);
    }
  }
}

/// What a cluster of two CTAs relies on: they wait for the same stages, and each loads a sub-tile.
RC_GTEST_PROP(SliceTileLists, GiveBothTilesOfAPairTheSameKeys, ()) {
  const Mask mask = random_long_mask();
  const TileLists lists = make_tile_lists(mask, {*rc::gen::element(1, 2, 4, 8), true});
  RC_ASSERT(lists.tiles_per_list % 2 == 0);
  for (std::size_t i = 0; i < lists.tiles.size(); i += 2) {
    const QueryTile& a = lists.tiles[i];
    const QueryTile& b = lists.tiles[i + 1];
    RC_ASSERT(a.row_end == b.row_begin);
    RC_ASSERT(a.full_tiles == b.full_tiles);
    RC_ASSERT(a.runs_begin == b.runs_begin);
    RC_ASSERT(a.partial_count == b.partial_count);
    for (std::int32_t j = 0; j < a.partial_count; ++j) {
      const PartialTile& of_a = partial_of(lists, a, j);
      const PartialTile& of_b = partial_of(lists, b, j);
      RC_ASSERT(of_a.k_begin[0] == of_b.k_begin[0]);
      RC_ASSERT(of_a.k_begin[1] == of_b.k_begin[1]);
    }
  }
}

RC_GTEST_PROP(SliceTileLists, OrderEveryTileOnceWithTheLongestFirst, ()) {
  const Mask mask = random_long_mask();
  const TileLists lists = make_tile_lists(mask, random_tiling());
  const auto count = static_cast<std::size_t>(lists.tiles_per_list);
  const auto together = static_cast<std::size_t>(lists.tiling.tiles());
  RC_ASSERT(lists.order.size() == lists.tiles.size());
  for (std::size_t list = 0; list < static_cast<std::size_t>(lists.list_heads); ++list) {
    const auto tile = [&](std::size_t i) {
      return static_cast<std::size_t>(lists.order[list * count + i]);
    };
    const auto cost = [&](std::size_t i) {
      std::int64_t sum = 0;
      for (std::size_t j = 0; j < together; ++j) {
        RC_ASSERT(tile(i + j) == tile(i) + j);
        sum += lists.tiles[list * count + tile(i + j)].cost;
      }
      return sum;
    };
    for (std::size_t i = 0; i < count; i += together) {
      RC_ASSERT(tile(i) % together == 0);
      if (i > 0) RC_ASSERT(cost(i - together) >= cost(i));
    }
    std::vector<std::int32_t> order(
        lists.order.begin() + static_cast<std::int64_t>(list * count),
        lists.order.begin() + static_cast<std::int64_t>((list + 1) * count));
    std::sort(order.begin(), order.end());
    for (std::size_t i = 0; i < count; ++i) RC_ASSERT(order[i] == static_cast<std::int32_t>(i));
  }
}

Mask mask_of(const std::string& name, std::int64_t tokens) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = tokens;
  return generate_mask(spec).mask;
}

TEST(SliceTileLists, NeedNoWordWhereAllIsSeen) {
  for (const int pack : {1, 2, 4, 8}) {
    const TileLists lists = make_tile_lists(mask_of("full", 1024), {pack});
    EXPECT_TRUE(lists.partial.empty());
    ASSERT_EQ(lists.tiles.size(), static_cast<std::size_t>(8 * pack));
    for (const QueryTile& tile : lists.tiles) EXPECT_EQ(tile.full_tiles, 8);
  }
}

TEST(SliceTileLists, ShareThePatternsOfADiagonal) {
  const TileLists lists = make_tile_lists(mask_of("causal", 64 * 1024), {1});
  ASSERT_EQ(lists.partial.size(), 512U);
  // One for the upper rows, one for the lower: [0, i] and [0, 64 + i].
  EXPECT_EQ(lists.patterns.size(), 2U * kGroupRows);
  for (const PartialTile& tile : lists.partial) {
    EXPECT_EQ(tile.pattern[0], lists.partial[0].pattern[0]);
    EXPECT_EQ(tile.pattern[1], lists.partial[0].pattern[1]);
  }
  EXPECT_EQ(lists.order.front(), 511);
  EXPECT_EQ(lists.order.back(), 0);
}

TEST(SliceTileLists, LeaveARowGroupOutOfTilesThatOnlyTheOtherSees) {
  // Two documents of 64 tokens: each group sees one half of its own.
  const Mask mask = Mask::from_slices(
      128, 128, {{0, 64, 0, 64, MaskSliceType::full}, {64, 128, 64, 128, MaskSliceType::full}});
  const TileLists lists = make_tile_lists(mask, {1});
  ASSERT_EQ(lists.partial.size(), 2U);
  for (std::size_t group = 0; group < 2; ++group) {
    EXPECT_EQ(lists.partial[group].k_begin[1], kAbsent);
    EXPECT_GE(lists.partial[group].pattern[group], 0);
    EXPECT_EQ(lists.partial[group].pattern[1 - group], kNone);
  }
  const Mask longer = Mask::from_slices(
      128, 256, {{0, 64, 0, 128, MaskSliceType::full}, {64, 128, 128, 256, MaskSliceType::full}});
  const TileLists pairs = make_tile_lists(longer, {1});
  ASSERT_EQ(pairs.partial.size(), 2U);
  EXPECT_EQ(pairs.partial[0].pattern[0], kFull);
  EXPECT_EQ(pairs.partial[0].pattern[1], kNone);
  EXPECT_EQ(pairs.partial[1].pattern[0], kNone);
  EXPECT_EQ(pairs.partial[1].pattern[1], kFull);
}

TEST(SliceTileLists, PairWhatTheSameGroupsSeeAndPutNarrowTilesFirst) {
  // The upper rows see keys 0…127, the lower 64…319: one half in common, three of the lower alone.
  const Mask mask = Mask::from_slices(
      128, 320, {{0, 64, 0, 128, MaskSliceType::full}, {64, 128, 64, 320, MaskSliceType::full}});
  const TileLists lists = make_tile_lists(mask, {1});
  const auto expect = [&](std::size_t i, std::int32_t k0, std::int32_t k1) {
    EXPECT_EQ(lists.partial[i].k_begin[0], k0);
    EXPECT_EQ(lists.partial[i].k_begin[1], k1);
  };
  ASSERT_EQ(lists.partial.size(), 3U);
  expect(0, 256, kAbsent);
  expect(1, 128, 192);
  expect(2, 64, 0);
  EXPECT_EQ(lists.partial[1].pattern[0], kNone);
  EXPECT_EQ(lists.partial[1].pattern[1], kFull);
}

/// One query block of 128 tokens that sees some ranges of keys.
TileLists lists_of_ranges(const std::vector<Range>& ranges, bool joins) {
  BlockLists blocks;
  blocks.heads = 1;
  blocks.q_bounds = {0, 128};
  blocks.k_bounds = {0};
  for (const Range& range : ranges) {
    if (range.begin > blocks.k_bounds.back()) blocks.k_bounds.push_back(range.begin);
    blocks.indices.push_back(static_cast<std::int32_t>(blocks.k_bounds.size()) - 1);
    blocks.k_bounds.push_back(range.end);
  }
  blocks.offsets = {0, std::ssize(blocks.indices)};
  const std::int64_t keys = blocks.k_bounds.back();
  const Mask mask = Mask::from_blocks(128, keys, {{0, 128, 0, keys, MaskSliceType::full}}, blocks);
  return make_tile_lists(mask, {.pack = 1, .joins = joins});
}

TEST(SliceTileLists, JoinWhatIsLeftOfTwoRanges) {
  // 16 and 30 keys are left over, and a sub-tile of the first range.
  const std::vector<Range> ranges = {{0, 80}, {200, 230}};
  EXPECT_EQ(lists_of_ranges(ranges, false).partial.size(), 2U);
  const TileLists lists = lists_of_ranges(ranges, true);
  ASSERT_EQ(lists.partial.size(), 1U);
  // Columns 0…31 are keys 198…229, from column 32 on keys 64….
  EXPECT_EQ(lists.partial[0].k_begin[0], 198);
  EXPECT_EQ(lists.partial[0].k_begin[1], 0);
  EXPECT_EQ(lists.joints[0].joint[0].cut(), 32);
  EXPECT_EQ(lists.joints[0].joint[0].skip(), 64 - 230);
  EXPECT_FALSE(lists.joints[0].joint[1].exists());
  EXPECT_EQ(lists.patterns.front(), (RowIntervals{2, 48, 64, 128}));
}

TEST(SliceTileLists, JoinTheLongestWithTheShortest) {
  // Of 48, 33, 31 and 7 keys the first fits with the last one alone; 33 and 31 do not fit.
  const TileLists lists = lists_of_ranges({{10, 58}, {100, 107}, {200, 233}, {300, 331}}, true);
  ASSERT_EQ(lists.partial.size(), 2U);
  std::vector<std::int32_t> cuts;
  for (const TileJoints& joints : lists.joints) {
    for (const Joint joint : joints.joint) cuts.push_back(joint.cut());
  }
  std::ranges::sort(cuts);
  EXPECT_EQ(cuts, (std::vector<std::int32_t>{0, 0, 0, 16}));
}

TEST(SliceTileLists, JoinNothingThatFitsNowhere) {
  EXPECT_TRUE(lists_of_ranges({{10, 43}, {100, 134}}, true).joints.empty());
  EXPECT_TRUE(lists_of_ranges({{0, 128}, {200, 328}}, true).joints.empty());
  EXPECT_FALSE(lists_of_ranges({{0, 3}, {100, 103}}, true).joints.empty());
  EXPECT_TRUE(lists_of_ranges({{0, 3}, {100, 103}}, false).joints.empty());
}

TEST(SliceTileLists, OfPairsLeaveEachTileOutOfWhatOnlyTheOtherSees) {
  const TileLists lists = make_tile_lists(mask_of("causal", 1024), {1, true});
  for (std::size_t i = 0; i < lists.tiles.size(); i += 2) {
    const auto begin = static_cast<std::int32_t>(i) * 128;
    ASSERT_EQ(lists.tiles[i].full_tiles, begin / kTileKeys);
    ASSERT_EQ(lists.tiles[i].partial_count, 2);
    const PartialTile* upper =
        &lists.partial[static_cast<std::size_t>(lists.tiles[i].partial_begin)];
    const PartialTile* lower = &partial_of(lists, lists.tiles[i + 1], 0);
    EXPECT_EQ(upper[0].k_begin[0], begin);
    EXPECT_EQ(upper[1].k_begin[0], begin + 128);
    EXPECT_EQ(upper[1].pattern[0], kNone);
    EXPECT_EQ(upper[1].pattern[1], kNone);
    EXPECT_EQ(lower[0].pattern[0], kFull);
    EXPECT_EQ(lower[0].pattern[1], kFull);
    EXPECT_EQ(lower[1].pattern[0], upper[0].pattern[0]);
    EXPECT_EQ(lower[1].pattern[1], upper[0].pattern[1]);
    EXPECT_LT(lists.tiles[i].cost, lists.tiles[i + 1].cost);
  }
}

TEST(SliceTileLists, AreEqualEachTime) {
  const Mask mask = mask_of("causal_document", 20000);
  const TileLists a = make_tile_lists(mask, {8});
  const TileLists b = make_tile_lists(mask, {8});
  EXPECT_EQ(a.patterns, b.patterns);
  EXPECT_EQ(a.order, b.order);
  EXPECT_EQ(a.partial.size(), b.partial.size());
}

/// Cells that the list visits in a tile, by its intervals alone.
std::int64_t area_of(const TileLists& lists, const QueryTile& tile) {
  const std::int64_t rows = tile.row_end - tile.row_begin;
  std::int64_t area = std::int64_t{2} * tile.full_tiles * kSubTileKeys * rows;
  for (std::int32_t i = 0; i < tile.partial_count; ++i) {
    const PartialTile& partial = partial_of(lists, tile, i);
    for (int group = 0; group < kRowGroups; ++group) {
      const std::int64_t tokens = std::clamp<std::int64_t>(
          rows - group * lists.tiling.group_tokens(), 0, lists.tiling.group_tokens());
      if (partial.pattern[group] == kFull) area += tokens * kTileKeys;
      if (partial.pattern[group] < 0) continue;
      const std::int64_t first = std::int64_t{partial.pattern[group]} * lists.tiling.group_tokens();
      for (std::int64_t t = 0; t < tokens; ++t) {
        const RowIntervals seen = lists.patterns[static_cast<std::size_t>(first + t)];
        area += seen.hi0 - seen.lo0 + seen.hi1 - seen.lo1;
      }
    }
  }
  return area;
}

/// Long enough for several threads to make parts of a list each.
TEST(SliceTileLists, AtFullLengthMatchTheAreaOfTheMask) {
  for (const MaskTraits& traits : mask_table()) {
    MaskSpec spec;
    spec.name = traits.name;
    spec.tokens = traits.uses_blocks ? 8200 : 300000;
    spec.lengths = "pile";
    spec.heads_q = 8;
    spec.heads_k = 2;
    spec.block = 64;
    const Mask mask = generate_mask(spec).mask;
    const TileLists lists = make_tile_lists(mask, {4});
    ASSERT_GE(lists.tiles_per_list, (spec.tokens + 31) / 32) << traits.name;
    std::int32_t row = 0;
    for (std::size_t i = 0; i < lists.tiles.size(); ++i) {
      const QueryTile& tile = lists.tiles[i];
      const auto list = static_cast<std::int64_t>(i) / lists.tiles_per_list;
      ASSERT_EQ(tile.row_begin, row);
      ASSERT_LE(tile.row_end, row + 32);
      row = tile.row_end == spec.tokens ? 0 : tile.row_end;
      ASSERT_EQ(area_of(lists, tile),
                mask.area_in(static_cast<int>(list), {tile.row_begin, tile.row_end},
                             {0, mask.k_tokens()}))
          << traits.name << ", tile " << i;
    }
  }
}

/// 128 rows are 16 tokens of 8 heads; a causal mask's row t sees t / 128 whole key tiles or so.
TEST(SliceTileLists, CountFullTilesPerQueryTile) {
  const auto full_tiles = [](const Mask& mask, int pack) {
    return key_tiles_per_query_tile(make_tile_lists(mask, {.pack = pack})).full;
  };
  const auto of = [](std::int64_t tokens, MaskSliceType type) {
    return Mask::from_slices(tokens, tokens, {{0, tokens, 0, tokens, type}});
  };
  EXPECT_EQ(full_tiles(of(4096, MaskSliceType::full), 8), 32);
  EXPECT_EQ(full_tiles(of(4096, MaskSliceType::full), 1), 32);
  EXPECT_NEAR(full_tiles(of(4096, MaskSliceType::causal), 8), 15.5, 0.5);
  EXPECT_EQ(full_tiles(of(64, MaskSliceType::full), 1), 0);
  EXPECT_EQ(full_tiles(Mask::from_slices(0, 64, {}), 1), 0);
}

TEST(SliceTileLists, OfAllMasksVisitTheirCells) {
  for (const MaskTraits& traits : mask_table()) {
    MaskSpec spec;
    spec.name = traits.name;
    spec.tokens = 777;
    spec.lengths = "pile";
    spec.window = 37;
    spec.block_tokens = 96;
    spec.block = 64;
    const Mask mask = generate_mask(spec).mask;
    for (const Tiling tiling :
         {Tiling{1}, Tiling{8}, Tiling{1, true}, Tiling{4, true}, Tiling{8, false, true}}) {
      const TileLists lists = make_tile_lists(mask, tiling);
      const Visits visits(lists, 0, 777, 777);
      EXPECT_EQ(visits.faults(), 0) << traits.name;
      EXPECT_TRUE(visits.cells() == mask.dense(0))
          << traits.name << ", pack " << tiling.pack << (tiling.row_pairs ? ", pairs" : "");
    }
  }
}

}  // namespace
}  // namespace longca::slice
