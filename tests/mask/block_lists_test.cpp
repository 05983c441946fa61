#include "mask/block_lists.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "mask/block_draw.h"

namespace longca {
namespace {

TEST(BlockBits, AreTheListsInWordsOf32) {
  const BlockLists lists{{0, 5, 9}, uniform_bounds(34, 1), 1, {0, 3, 4}, {0, 31, 33, 32}};
  EXPECT_EQ(block_bits(lists), (std::vector<std::uint32_t>{0x80000001U, 2, 0, 1}));
}

TEST(BlockBits, GiveBackTheListsThatTheyWereMadeOf) {
  for (const std::int64_t k_blocks : {1, 31, 32, 33, 1000}) {
    for (const double density : {0.1, 0.5, 1.0}) {
      const BlockLists lists =
          draw_blocks({uniform_bounds(600, 2), uniform_bounds(k_blocks, 1), 3, density},
                      static_cast<std::uint64_t>(k_blocks));
      EXPECT_EQ(lists_of_bits(lists.q_bounds, lists.k_bounds, lists.heads, block_bits(lists)),
                lists);
    }
  }
}

TEST(BlockBits, RefuseWhatDoesNotFitTheBounds) {
  const std::vector<std::int64_t> one = {0, 8};
  EXPECT_THROW(lists_of_bits(one, uniform_bounds(33, 1), 1, std::vector<std::uint32_t>{1}),
               InternalError);
  EXPECT_THROW(lists_of_bits(one, uniform_bounds(31, 1), 1, std::vector<std::uint32_t>{1U << 31}),
               InternalError);
}

}  // namespace
}  // namespace longca
