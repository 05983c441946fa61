#include "advise/touched_tiles.h"

#include <gtest/gtest.h>

#include "mask/generators.h"
#include "mask/tiles.h"
#include "planted.h"

namespace longca::advise {
namespace {

TEST(TouchedTiles, OfBlocksAreThoseWithACell) {
  for (const char* name : {"block_sparse", "block_sparse_variable"}) {
    Case c = testing::case_of("slice", name, 3000);
    c.block = 96;
    c.density = 0.2;
    c.block_heads = "kv";
    const Mask mask = generate_mask(c.mask_spec()).mask;
    for (const std::int64_t queries : {8, 16, 96, 100, 128, 512, 4096}) {
      for (const std::int64_t keys : {64, 128}) {
        EXPECT_EQ(count_touched_tiles(mask, 1, queries, keys),
                  tile_runs(mask, 1, queries, keys).tiles())
            << name << " " << queries << " × " << keys;
      }
    }
  }
}

TEST(TouchedTiles, OfOtherMasksToo) {
  const Mask mask = generate_mask(testing::case_of("slice", "causal", 1000).mask_spec()).mask;
  EXPECT_EQ(count_touched_tiles(mask, 0, 500, 500), 3);
}

}  // namespace
}  // namespace longca::advise
