#include "mask/mask.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>
#include <numeric>

#include "mask/error_of.h"
#include "mask/generators.h"
#include "mask/oracle.h"

namespace longca {
namespace {

using oracle::Dense;
using oracle::RandomMask;
using testing::error_of;
using ::testing::HasSubstr;

RC_GTEST_PROP(Mask, AreasAgreeWithTheDenseMatrix, ()) {
  const RandomMask random = oracle::random_mask();
  RC_ASSERT(random.mask.heads() == static_cast<int>(random.heads.size()));
  double sum = 0;
  for (int head = 0; head < random.mask.heads(); ++head) {
    const Dense& dense = random.heads[static_cast<std::size_t>(head)];
    RC_ASSERT(random.mask.area(head) == dense.area());
    sum += static_cast<double>(dense.area());
  }
  RC_ASSERT(random.mask.mean_area() == sum / random.mask.heads());
}

RC_GTEST_PROP(Mask, RowsColumnsAndCellsAgreeWithTheDenseMatrix, ()) {
  const RandomMask random = oracle::random_mask();
  for (int head = 0; head < random.mask.heads(); ++head) {
    const Dense& dense = random.heads[static_cast<std::size_t>(head)];
    RC_ASSERT(oracle::dense_of(random.mask, head) == dense);
    for (std::int64_t q = 0; q < dense.q_tokens; ++q) {
      RC_ASSERT(random.mask.key_intervals(head, q) == dense.row_intervals(q));
      for (std::int64_t k = 0; k < dense.k_tokens; ++k) {
        RC_ASSERT(random.mask.allows(head, q, k) == (dense.at(q, k) != 0));
      }
    }
    for (std::int64_t k = 0; k < dense.k_tokens; ++k) {
      RC_ASSERT(random.mask.query_intervals(head, k) == dense.column_intervals(k));
    }
  }
}

RC_GTEST_PROP(Mask, TilesAgreeWithTheDenseMatrix, ()) {
  const RandomMask random = oracle::random_mask();
  for (int head = 0; head < random.mask.heads(); ++head) {
    const Dense& dense = random.heads[static_cast<std::size_t>(head)];
    for (int i = 0; i < 20; ++i) {
      // Tiles may reach past the edges.
      const Range rows = oracle::random_range(dense.q_tokens + 4);
      const Range keys = oracle::random_range(dense.k_tokens + 4);
      RC_ASSERT(random.mask.area_in(head, rows, keys) == dense.area_in(rows, keys));
      RC_ASSERT(random.mask.tile_class(head, rows, keys) == dense.tile_class(rows, keys));
    }
  }
}

RC_GTEST_PROP(Mask, SlicesThatMeetAreRefused, ()) {
  const std::int64_t q_tokens = oracle::random_tokens();
  const std::int64_t k_tokens = oracle::random_tokens();
  const auto slices = oracle::random_slices(q_tokens, k_tokens, *rc::gen::inRange(0, 8));
  std::vector<int> times(static_cast<std::size_t>(q_tokens * k_tokens), 0);
  for (const MaskSlice& slice : slices) {
    const Dense cells(q_tokens, k_tokens,
                      [&](auto q, auto k) { return oracle::slice_allows(slice, q, k); });
    for (std::size_t i = 0; i < times.size(); ++i) times[i] += cells.cells[i];
  }
  const bool meet = std::any_of(times.begin(), times.end(), [](int n) { return n > 1; });
  const std::string message = error_of([&] { Mask::from_slices(q_tokens, k_tokens, slices); });
  RC_ASSERT((message.find("both allow query") != std::string::npos) == meet);
}

// Thin slices leave room for many, so that the sweep keeps long lists and loses neighbours.
RC_GTEST_PROP(Mask, ManyThinSlicesThatMeetAreRefused, ()) {
  const std::int64_t tokens = 48;
  std::vector<MaskSlice> slices;
  std::vector<int> times(tokens * tokens, 0);
  const int count = *rc::gen::inRange(2, 40);
  for (int i = 0; i < count; ++i) {
    const auto q = *rc::gen::inRange<std::int64_t>(0, tokens);
    const auto k = *rc::gen::inRange<std::int64_t>(0, tokens);
    const auto q_size = *rc::gen::inRange<std::int64_t>(1, 12);
    const auto k_size = *rc::gen::inRange<std::int64_t>(1, 3);
    const auto type = *rc::gen::element(MaskSliceType::full, MaskSliceType::bi_causal);
    const std::int64_t q_end = std::min(q + q_size, tokens);
    const std::int64_t extra = type == MaskSliceType::bi_causal ? q_end - q - 1 : 0;
    slices.push_back({q, q_end, k, std::min(k + k_size + extra, tokens), type});
    for (std::int64_t row = 0; row < tokens; ++row) {
      for (std::int64_t key = 0; key < tokens; ++key) {
        times[static_cast<std::size_t>(row * tokens + key)] +=
            oracle::slice_allows(slices.back(), row, key) ? 1 : 0;
      }
    }
  }
  const bool meet = std::any_of(times.begin(), times.end(), [](int n) { return n > 1; });
  const std::string message = error_of([&] { Mask::from_slices(tokens, tokens, slices); });
  RC_ASSERT((message.find("both allow query") != std::string::npos) == meet);
}

TEST(Mask, KeepsSlicesInOrderAndDropsEmptyOnes) {
  const MaskSlice left = {0, 2, 0, 2, MaskSliceType::full};
  const MaskSlice right = {0, 2, 2, 4, MaskSliceType::full};
  const MaskSlice below = {2, 4, 0, 4, MaskSliceType::causal};
  const MaskSlice nothing = {1, 3, 2, 2, MaskSliceType::full};
  const MaskSlice no_row = {3, 4, 0, 0, MaskSliceType::causal};
  const Mask mask = Mask::from_slices(4, 4, {below, right, nothing, left, no_row});
  EXPECT_THAT(mask.slices(), ::testing::ElementsAre(left, right, below));
}

TEST(Mask, OfNothing) {
  const Mask mask = Mask::from_slices(0, 0, {});
  EXPECT_EQ(mask.area(0), 0);
  EXPECT_EQ(mask.heads(), 1);
  EXPECT_TRUE(mask.dense(0).empty());
  EXPECT_EQ(mask.tile_class(0, {0, 5}, {0, 5}), TileClass::empty);
}

TEST(Mask, NamesTheSliceThatReachesOutside) {
  EXPECT_EQ(error_of([] {
              Mask::from_slices(
                  4, 8, {{0, 4, 0, 8, MaskSliceType::full}, {0, 5, 2, 9, MaskSliceType::causal}});
            }),
            "slice 1, [0, 5) × [2, 9) causal, reaches outside the mask of 4 queries × 8 keys");
  EXPECT_THAT(error_of([] {
                Mask::from_slices(4, 4, {{-1, 2, 0, 4, MaskSliceType::full}});
              }),
              HasSubstr("slice 0, [-1, 2) × [0, 4) full, reaches outside"));
  EXPECT_EQ(error_of([] {
              Mask::from_slices(4, 4, {{3, 2, 0, 4, MaskSliceType::full}});
            }),
            "slice 0, [3, 2) × [0, 4) full, has a range that ends before it begins");
}

TEST(Mask, RefusesSlicesThatMeetAfterTheOneBetweenThemEnds) {
  EXPECT_EQ(error_of([] {
              Mask::from_slices(4, 8,
                                {{0, 3, 0, 3, MaskSliceType::bi_causal},
                                 {0, 1, 1, 2, MaskSliceType::full},
                                 {0, 3, 2, 3, MaskSliceType::full}});
            }),
            "slices [0, 3) × [0, 3) bi_causal and [0, 3) × [2, 3) full both allow query 2, key 2");
}

TEST(Mask, NamesTheSlicesThatMeetAndTheCell) {
  EXPECT_EQ(error_of([] {
              Mask::from_slices(
                  8, 8, {{0, 8, 0, 8, MaskSliceType::causal}, {6, 8, 7, 8, MaskSliceType::full}});
            }),
            "slices [0, 8) × [0, 8) causal and [6, 8) × [7, 8) full both allow query 7, key 7");
}

TEST(Mask, RefusesTokenCountsOutsideTheLimits) {
  EXPECT_EQ(error_of([] { Mask::from_slices(-1, 4, {}); }),
            "a mask of -1 queries: the limits are 0 and 1073741824");
  EXPECT_EQ(error_of([] { Mask::from_slices(4, kMaxTokens + 1, {}); }),
            "a mask of 1073741825 keys: the limits are 0 and 1073741824");
}

TEST(Mask, RefusesADenseMatrixThatIsTooLarge) {
  const Mask mask = Mask::from_slices(1 << 15, 1 << 15, {});
  EXPECT_EQ(
      error_of([&] { mask.dense(0); }),
      "a dense mask of 32768 queries × 32768 keys has 1073741824 cells: the limit is 268435456");
}

TEST(Mask, RefusesHeadsAndRowsThatItDoesNotHave) {
  const Mask mask = Mask::from_slices(4, 4, {});
  EXPECT_THROW(mask.area(1), InternalError);
  EXPECT_THROW(mask.key_intervals(0, 4), InternalError);
  EXPECT_THROW(mask.query_intervals(0, -1), InternalError);
  EXPECT_THROW(mask.area_in(-1, {0, 1}, {0, 1}), InternalError);
}

class BlockListsTest : public ::testing::Test {
 protected:
  std::string error() const {
    return error_of([&] { Mask::from_blocks(8, 8, {{0, 8, 0, 8, MaskSliceType::full}}, blocks); });
  }
  BlockLists blocks{{0, 4, 8}, {0, 3, 6, 8}, 2, {0, 1, 3, 3, 4}, {2, 0, 1, 1}};
};

TEST_F(BlockListsTest, DifferPerHead) {
  const Mask mask = Mask::from_blocks(8, 8, {{0, 8, 0, 8, MaskSliceType::full}}, blocks);
  EXPECT_EQ(mask.heads(), 2);
  EXPECT_EQ(mask.area(0), 4 * 2 + 4 * 6);
  EXPECT_EQ(mask.area(1), 4 * 3);
  EXPECT_EQ(mask.mean_area(), 22.0);
  EXPECT_THAT(mask.key_intervals(0, 7), ::testing::ElementsAre(Range{0, 6}));
  EXPECT_TRUE(mask.key_intervals(1, 0).empty());
}

TEST_F(BlockListsTest, NameTheHeadAndBlockOfABadList) {
  blocks.indices[2] = 0;
  EXPECT_EQ(error(), "head 0, query block 1 keeps key block 0 after 0: they must ascend");
  blocks.indices = {2, 0, 1, 3};
  EXPECT_EQ(error(), "head 1, query block 1 keeps key block 3: they are from 0 to 2");
}

TEST_F(BlockListsTest, NameTheBoundsThatDoNotFit) {
  blocks.k_bounds = {0, 3, 3, 8};
  EXPECT_EQ(error(), "key block 1 goes from 3 to 3: bounds must ascend");
  blocks.k_bounds = {0, 3, 6, 7};
  EXPECT_EQ(error(), "key block bounds go from 0 to 7: they must go from 0 to 8 tokens");
  blocks.k_bounds = {0, 3, 6, 8};
  blocks.q_bounds = {};
  EXPECT_EQ(error(), "query block bounds go from 0 to 0: they must go from 0 to 8 tokens");
}

TEST_F(BlockListsTest, RefuseOffsetsThatDoNotFit) {
  blocks.offsets = {0, 1, 3, 2, 4};
  EXPECT_EQ(error(), "block list offsets must be 5 ascending numbers from 0 to the 4 kept blocks");
  blocks.offsets = {0, 1, 3, 4};
  EXPECT_EQ(error(), "block list offsets must be 5 ascending numbers from 0 to the 4 kept blocks");
  blocks.heads = 0;
  EXPECT_EQ(error(), "block lists of 0 heads: at least 1");
}

std::int64_t counted(const Mask& mask) {
  std::int64_t count = 0;
  for (int head = 0; head < mask.heads(); ++head) {
    for (std::int64_t q = 0; q < mask.q_tokens(); ++q) {
      count += mask.key_intervals(head, q).empty() ? 1 : 0;
    }
  }
  return count;
}

RC_GTEST_PROP(RowsWithoutKeys, AreThoseWhoseIntervalsAreEmpty, ()) {
  const oracle::RandomMask random = oracle::random_mask();
  if (random.mask.blocks() == nullptr) return;
  RC_ASSERT(rows_without_keys(random.mask) == counted(random.mask));
}

TEST(RowsWithoutKeys, OfCausalBlocks) {
  MaskSpec spec;
  spec.name = "block_sparse_variable";
  spec.tokens = 300;
  spec.block = 40;
  spec.heads_q = spec.heads_k = 3;
  spec.density = 0.1;
  EXPECT_EQ(rows_without_keys(generate_mask(spec).mask), 0);
  spec.block_causal = true;
  const Mask mask = generate_mask(spec).mask;
  EXPECT_EQ(rows_without_keys(mask), counted(mask));
  EXPECT_GT(counted(mask), 0) << "or this test shows nothing";
}

RC_GTEST_PROP(AnyHead, SeesWhatSomeHeadSees, ()) {
  const Mask mask = oracle::random_mask().mask;
  std::vector<std::uint8_t> expected = mask.dense(0);
  for (int head = 1; head < mask.heads(); ++head) {
    const std::vector<std::uint8_t> of_head = mask.dense(head);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] |= of_head[i];
  }
  const Mask any = any_head_of(mask);
  RC_ASSERT(any.heads() == 1);
  RC_ASSERT(any.dense(0) == expected);
}

TEST(DerivedOfAMask, IsMadeOnceForAllCopies) {
  const Mask mask = Mask::from_slices(4, 4, {});
  int made = 0;
  const auto make = [&] { return std::make_shared<const int>(++made); };
  EXPECT_EQ(mask.derived<int>(make), 1);
  EXPECT_EQ(Mask(mask).derived<int>(make), 1);
  EXPECT_EQ(Mask::from_slices(4, 4, {}).derived<int>(make), 2);
}

}  // namespace
}  // namespace longca
