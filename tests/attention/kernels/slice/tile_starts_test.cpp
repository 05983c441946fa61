#include "attention/kernels/slice/planner/tile_starts.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "attention/kernels/slice/random_masks.h"
#include "mask/generators.h"

namespace longca::slice {
namespace {

RC_GTEST_PROP(SliceTileStarts, HaveTheTilesInOrderWithTheirFirstEntries, ()) {
  const TileLists lists = make_tile_lists(
      random_long_mask(), {*rc::gen::element(1, 2, 4, 8), *rc::gen::arbitrary<bool>()});
  const std::vector<TileStart> starts = make_tile_starts(lists);
  RC_ASSERT(starts.size() == lists.tiles.size());
  const auto tiles_per_list = static_cast<std::size_t>(lists.tiles_per_list);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const TileStart& start = starts[i];
    const std::size_t first = i / tiles_per_list * tiles_per_list;
    const QueryTile& tile = lists.tiles[first + static_cast<std::size_t>(lists.order[i])];
    RC_ASSERT(start.row_begin == tile.row_begin);
    RC_ASSERT(start.row_end == tile.row_end);
    RC_ASSERT(start.partial_begin == tile.partial_begin);
    RC_ASSERT(start.partial_count == tile.partial_count);
    RC_ASSERT(start.runs_begin == tile.runs_begin);
    RC_ASSERT(start.full_tiles == tile.full_tiles);
    if (tile.full_tiles > 0) {
      const FullRun& run = lists.runs[static_cast<std::size_t>(tile.runs_begin)];
      RC_ASSERT(start.run.k_begin == run.k_begin);
      RC_ASSERT(start.run.sub_tiles == run.sub_tiles);
    }
    for (int j = 0; j < std::min(tile.partial_count, TileStart::kPartial); ++j) {
      const PartialTile& partial =
          lists.partial[static_cast<std::size_t>(tile.partial_begin) + static_cast<std::size_t>(j)];
      RC_ASSERT(std::memcmp(&start.partial[j], &partial, sizeof partial) == 0);
    }
  }
}

TEST(SliceTileStarts, AreAWordForEachLaneOfAWarp) {
  MaskSpec spec;
  spec.name = "sliding_window";
  spec.tokens = 4096;
  const TileLists lists = make_tile_lists(generate_mask(spec).mask, {.pack = 1});
  const std::vector<TileStart> starts = make_tile_starts(lists);
  for (std::size_t i = 0; i < starts.size(); ++i) {
    std::int32_t words[32];
    static_assert(sizeof words == sizeof(TileStart));
    std::memcpy(words, &starts[i], sizeof words);
    const QueryTile& tile = lists.tiles[static_cast<std::size_t>(lists.order[i])];
    ASSERT_GT(tile.partial_count, 0);
    ASSERT_GT(tile.full_tiles, 0);
    EXPECT_EQ(words[3], tile.partial_count);
    EXPECT_EQ(words[7], lists.runs[static_cast<std::size_t>(tile.runs_begin)].sub_tiles);
    const auto last = static_cast<std::size_t>(tile.partial_count - 1);
    ASSERT_LT(last, TileStart::kPartial);
    EXPECT_EQ(words[8 + 4 * last + 2],
              lists.partial[static_cast<std::size_t>(tile.partial_begin) + last].pattern[0]);
  }
}

TEST(SliceTileStarts, AreNotMadeOfVeryManyTiles) {
  MaskSpec spec;
  spec.name = "full";
  constexpr int kTileTokens = kRowGroups * kGroupRows / 8;  // of packs of 8
  spec.tokens = kTileTokens * static_cast<std::int64_t>(kMaxTileStarts);
  EXPECT_EQ(make_tile_starts(make_tile_lists(generate_mask(spec).mask, {.pack = 8})).size(),
            kMaxTileStarts);
  spec.tokens += kTileTokens;
  EXPECT_TRUE(make_tile_starts(make_tile_lists(generate_mask(spec).mask, {.pack = 8})).empty());
}

}  // namespace
}  // namespace longca::slice
