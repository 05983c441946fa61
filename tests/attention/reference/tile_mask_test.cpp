#include "attention/reference/tile_mask.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "mask/generators.h"

namespace longca {
namespace {

bool in_tile_mask(const TileMask& tile_mask, std::int64_t lane, std::int64_t token) {
  for (const TileMask::Partner& partner : tile_mask.partners) {
    if (partner.tile != token / kTile) continue;
    if (partner.bits < 0) return true;
    return (tile_mask.bits[partner.bits][lane] >> (token % kTile) & 1) != 0;
  }
  return false;
}

RC_GTEST_PROP(TileMask, AgreesWithTheDenseMaskBothWays, ()) {
  MaskSpec spec;
  spec.name = mask_table()[*rc::gen::inRange<std::size_t>(0, mask_table().size())].name;
  spec.tokens = *rc::gen::inRange<std::int64_t>(1, 300);
  spec.seed = *rc::gen::inRange<std::uint64_t>(0, 1000);
  spec.window = *rc::gen::inRange<std::int64_t>(0, 100);
  spec.block_tokens = *rc::gen::inRange<std::int64_t>(1, 100);
  spec.block = *rc::gen::inRange<std::int64_t>(2, 90);
  spec.heads_q = 4;
  spec.heads_k = 2;
  const Mask mask = generate_mask(spec).mask;
  const int head = mask.heads() - 1;
  const auto dense = mask.dense(head);
  for (std::int64_t tile = 0; tile < tile_count(spec.tokens); ++tile) {
    const TileMask rows = TileMask::make(mask, head, TileOwner::queries, tile);
    const TileMask keys = TileMask::make(mask, head, TileOwner::keys, tile);
    RC_ASSERT(count_partners(mask, head, TileOwner::queries, tile) ==
              static_cast<std::int64_t>(rows.partners.size()));
    for (std::int64_t lane = 0; lane < std::min(kTile, spec.tokens - tile * kTile); ++lane) {
      const std::int64_t own = tile * kTile + lane;
      for (std::int64_t other = 0; other < spec.tokens; ++other) {
        RC_ASSERT(in_tile_mask(rows, lane, other) == (dense[own * spec.tokens + other] != 0));
        RC_ASSERT(in_tile_mask(keys, lane, other) == (dense[other * spec.tokens + own] != 0));
      }
    }
  }
}

TEST(TileMask, ListsOnlyTilesWithACellAndMarksFullOnes) {
  const Mask mask = Mask::from_slices(200, 200, {{0, 200, 0, 200, MaskSliceType::causal}});
  const TileMask tile = TileMask::make(mask, 0, TileOwner::queries, 2);
  ASSERT_EQ(tile.partners.size(), 3U);
  EXPECT_EQ(tile.partners[0].bits, -1);
  EXPECT_EQ(tile.partners[1].bits, -1);
  EXPECT_GE(tile.partners[2].bits, 0);
}

}  // namespace
}  // namespace longca
