#include "mask/block_draw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <numeric>

#include "core/error.h"
#include "core/philox.h"

namespace longca {
namespace {

using ::testing::ElementsAre;

/// block_draw.h, word for word: number every key block, sort, keep the first.
std::vector<std::int32_t> kept_by_sorting(int head, std::int64_t q_block, std::int64_t k_blocks,
                                          std::int64_t kept, std::uint64_t seed) {
  std::vector<std::pair<std::uint32_t, std::int32_t>> numbers;
  for (std::int64_t j = 0; j < k_blocks; ++j) {
    const PhiloxCounter counter = {static_cast<std::uint32_t>(head),
                                   static_cast<std::uint32_t>(q_block),
                                   static_cast<std::uint32_t>(j / 4), 0};
    const auto words = philox4x32_10(counter, philox_key(seed));
    numbers.emplace_back(words[static_cast<std::size_t>(j % 4)], static_cast<std::int32_t>(j));
  }
  std::sort(numbers.begin(), numbers.end());
  std::vector<std::int32_t> blocks;
  for (std::int64_t i = 0; i < kept; ++i) {
    blocks.push_back(numbers[static_cast<std::size_t>(i)].second);
  }
  std::sort(blocks.begin(), blocks.end());
  return blocks;
}

RC_GTEST_PROP(BlockDraw, KeepsTheBlocksOfTheSmallestNumbers, (std::uint64_t seed)) {
  const auto q_blocks = *rc::gen::inRange<std::int64_t>(0, 5);
  const auto k_blocks = *rc::gen::inRange<std::int64_t>(q_blocks == 0 ? 0 : 1, 300);
  const int heads = *rc::gen::inRange(1, 4);
  const double density = *rc::gen::inRange(1, 101) / 100.0;
  const BlockLists lists = draw_blocks(
      {uniform_bounds(q_blocks * 2, 2), uniform_bounds(k_blocks, 1), heads, density}, seed);
  RC_ASSERT(lists.heads == heads);
  RC_ASSERT(lists.q_blocks() == q_blocks && lists.k_blocks() == k_blocks);
  for (int head = 0; head < heads; ++head) {
    for (std::int64_t i = 0; i < q_blocks; ++i) {
      const auto kept = lists.kept(head, i);
      RC_ASSERT(std::vector<std::int32_t>(kept.begin(), kept.end()) ==
                kept_by_sorting(head, i, k_blocks, kept_blocks(density, k_blocks), seed));
    }
  }
}

TEST(BlockDraw, OfLongRowsIsTheSame) {
  constexpr std::int64_t kBlocks = 5000;
  for (const double density : {0.0001, 0.1, 0.5, 0.9, 0.9999, 1.0}) {
    const BlockLists lists =
        draw_blocks({uniform_bounds(3, 1), uniform_bounds(kBlocks, 1), 2, density}, 42);
    for (int head = 0; head < 2; ++head) {
      for (std::int64_t i = 0; i < 3; ++i) {
        const auto kept = lists.kept(head, i);
        EXPECT_THAT(kept, ::testing::ElementsAreArray(kept_by_sorting(
                              head, i, kBlocks, kept_blocks(density, kBlocks), 42)));
      }
    }
  }
}

/// The definition, cell by cell: a key block is visible if some query of the block may see a key of
/// it.
RC_GTEST_PROP(BlockDraw, CausalRowsChooseAmongTheBlocksThatTheySee, (std::uint64_t seed)) {
  const auto tokens = *rc::gen::inRange<std::int64_t>(1, 300);
  const auto block = *rc::gen::inRange<std::int64_t>(1, 400);  // also larger than the sequence
  PythonRandom random(seed);
  BlockChoice choice{variable_bounds(tokens, block, random), variable_bounds(tokens, block, random),
                     2, *rc::gen::inRange(1, 101) / 100.0, true};
  const BlockLists lists = draw_blocks(choice, seed);
  for (int head = 0; head < 2; ++head) {
    for (std::int64_t i = 0; i < lists.q_blocks(); ++i) {
      std::int64_t visible = 0;
      for (std::int64_t j = 0; j < lists.k_blocks(); ++j) {
        visible += choice.k_bounds[static_cast<std::size_t>(j)] <=
                   choice.q_bounds[static_cast<std::size_t>(i) + 1] - 1;
      }
      RC_ASSERT(visible >= 1);
      const auto kept = lists.kept(head, i);
      RC_ASSERT(std::vector<std::int32_t>(kept.begin(), kept.end()) ==
                kept_by_sorting(head, i, visible, kept_blocks(choice.density, visible), seed));
    }
  }
}

TEST(BlockDraw, RoundsAsPython) {
  EXPECT_EQ(kept_blocks(0.5, 5), 2) << "round(2.5) is 2";
  EXPECT_EQ(kept_blocks(0.5, 7), 4) << "round(3.5) is 4";
  EXPECT_EQ(kept_blocks(0.1, 3), 1) << "at least one";
  EXPECT_EQ(kept_blocks(1.0, 3), 3);
  EXPECT_EQ(kept_blocks(0.7, 0), 0) << "there is none to keep";
}

TEST(BlockDraw, UniformBoundsCutTheLastBlock) {
  EXPECT_THAT(uniform_bounds(10, 4), ElementsAre(0, 4, 8, 10));
  EXPECT_THAT(uniform_bounds(8, 4), ElementsAre(0, 4, 8));
  EXPECT_THAT(uniform_bounds(3, 4), ElementsAre(0, 3));
  EXPECT_THAT(uniform_bounds(0, 4), ElementsAre(0));
}

// Printed by CPython 3.11: query bounds, then key bounds, from one random.Random(seed).
TEST(BlockDraw, VariableBoundsAreCPythons) {
  PythonRandom random(42);
  EXPECT_THAT(variable_bounds(1000, 128, random),
              ElementsAre(0, 92, 162, 296, 422, 543, 642, 732, 818, 990, 1000));
  EXPECT_THAT(variable_bounds(1000, 128, random),
              ElementsAre(0, 71, 158, 277, 400, 470, 584, 755, 875, 1000));
  PythonRandom other(1);
  EXPECT_THAT(variable_bounds(300, 64, other), ElementsAre(0, 49, 89, 153, 200, 295, 300));
  EXPECT_THAT(variable_bounds(300, 64, other), ElementsAre(0, 92, 172, 230, 274, 300));
  PythonRandom ones(0);
  std::vector<std::int64_t> each(21);
  std::iota(each.begin(), each.end(), 0);
  EXPECT_EQ(variable_bounds(20, 1, ones), each) << "randint(0, 1) is raised to 1";
}

TEST(BlockDraw, RefusesListsThatNoMachineHolds) {
  try {
    draw_blocks({uniform_bounds(1 << 20, 1), uniform_bounds(1 << 20, 1), 1, 1.0}, 0);
    FAIL() << "no InputError";
  } catch (const InputError& error) {
    EXPECT_STREQ(
        error.what(),
        "1 heads × 1048576 query blocks that keep 1048576 key blocks on average are 1099511627776 "
        "entries of block lists: the limit is 2147483648; use larger blocks or a lower density");
  }
}

}  // namespace
}  // namespace longca
