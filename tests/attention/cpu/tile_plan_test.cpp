// The panels that tiles list, and their bits, against the mask cell by cell.
#include "attention/cpu/tile_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "attention/cpu/random_problem.h"
#include "core/rounding.h"

namespace longca::cpu {
namespace {

/// Whether the plan lets row `row` of a tile see key `key`.
bool plan_allows(const HeadTiles& head, const QueryTile& tile, std::int64_t row, std::int64_t key) {
  for (const PanelRef& ref : head.panels_of(tile)) {
    if (ref.panel != key / kPanelKeys) continue;
    const std::uint32_t* bits = head.bits_of(ref, static_cast<int>(row / kGroupRows));
    return !bits || ((bits[row % kGroupRows] >> (key % kPanelKeys)) & 1U) != 0;
  }
  return false;
}

void expect_plan_is_mask(const Mask& mask, int mask_head, const HeadTiles& head) {
  std::int64_t next_row = 0;
  for (const QueryTile& tile : head.tiles) {
    ASSERT_EQ(tile.rows.begin, next_row);
    ASSERT_GT(tile.rows.size(), 0);
    ASSERT_LE(tile.rows.size(), kTileRows);
    next_row = tile.rows.end;
    for (std::int64_t row = 0; row < tile.rows.size(); ++row) {
      for (std::int64_t key = 0; key < round_up(mask.k_tokens(), kPanelKeys); ++key) {
        const bool allowed =
            key < mask.k_tokens() && mask.allows(mask_head, tile.rows.begin + row, key);
        ASSERT_EQ(plan_allows(head, tile, row, key), allowed) << row << ", " << key;
      }
    }
  }
  ASSERT_EQ(next_row, mask.q_tokens());
}

TEST(TilePlan, IsTheMaskCellByCell) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const Problem problem = test::random_problem(DType::float32, random);
    const Mask mask = test::random_mask(problem.tokens_q, problem.tokens_k, problem.heads_q,
                                        problem.heads_k, random);
    const std::vector<std::int64_t> grid{0, mask.q_tokens()};
    for (int head = 0; head < mask.heads(); ++head) {
      ASSERT_NO_FATAL_FAILURE(expect_plan_is_mask(mask, head, plan_tiles(mask, head, grid)));
      if (!mask.blocks()) continue;
      ASSERT_NO_FATAL_FAILURE(
          expect_plan_is_mask(mask, head, plan_tiles(mask, head, mask.blocks()->q_bounds)));
    }
  }
}

TEST(TilePlan, ListsNoPanelThatNobodySeesAndNoMaskWhereAllSeeAll) {
  const Mask mask = Mask::from_slices(256, 256, {{0, 256, 0, 256, MaskSliceType::causal}});
  const std::vector<std::int64_t> grid{0, 256};
  const HeadTiles head = plan_tiles(mask, 0, grid);
  ASSERT_EQ(head.tiles.size(), 2U);
  const auto panels = head.panels_of(head.tiles[1]);
  ASSERT_EQ(panels.size(), 8U);
  for (std::size_t p = 0; p < 8; ++p) EXPECT_EQ(panels[p].first_mask < 0, p < 4) << p;
  EXPECT_EQ(head.panels_of(head.tiles[0]).size(), 4U);
}

TEST(GroupPanels, LeavesOutWhatTheGroupDoesNotSeeAndJoinsTheRest) {
  const Mask mask = Mask::from_slices(
      128, 256, {{0, 128, 0, 70, MaskSliceType::full}, {0, 64, 128, 200, MaskSliceType::full}});
  const std::vector<std::int64_t> grid{0, 128};
  const HeadTiles head = plan_tiles(mask, 0, grid);
  const auto panels = head.panels_of(head.tiles[0]);  // 0 1 2 and 4 5 6
  const GroupPanels first(head, panels, 0, GroupPanels::Columns::packed);
  ASSERT_EQ(first.all().size(), 6U);
  ASSERT_EQ(first.runs().size(), 2U);
  EXPECT_EQ(first.runs()[0].key, 0);
  EXPECT_EQ(first.runs()[0].keys, 70);
  EXPECT_EQ(first.runs()[1].key, 128);
  EXPECT_EQ(first.runs()[1].keys, 72);
  EXPECT_EQ(first.runs()[1].column, 96);
  const GroupPanels last(head, panels, 15, GroupPanels::Columns::packed);
  ASSERT_EQ(last.all().size(), 3U);
  EXPECT_EQ(last.runs()[0].keys, 70);
}

}  // namespace
}  // namespace longca::cpu
