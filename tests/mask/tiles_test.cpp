#include "mask/tiles.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/error.h"
#include "mask/convert.h"
#include "mask/generators.h"
#include "mask/oracle.h"

namespace longca {
namespace {

using oracle::Dense;
using oracle::RandomMask;

/// The class of every tile, from its cells.
std::vector<std::vector<TileClass>> classes_of(const Dense& dense, std::int64_t tile_m,
                                               std::int64_t tile_n) {
  std::vector<std::vector<TileClass>> classes;
  for (std::int64_t q = 0; q < dense.q_tokens; q += tile_m) {
    classes.emplace_back();
    for (std::int64_t k = 0; k < dense.k_tokens; k += tile_n) {
      classes.back().push_back(dense.tile_class({q, q + tile_m}, {k, k + tile_n}));
    }
  }
  return classes;
}

std::vector<std::vector<TileClass>> transpose(const std::vector<std::vector<TileClass>>& rows,
                                              std::size_t columns) {
  std::vector<std::vector<TileClass>> out(columns);
  for (const auto& row : rows) {
    for (std::size_t j = 0; j < row.size(); ++j) out[j].push_back(row[j]);
  }
  return out;
}

/// The longest runs that describe the classes.
std::vector<TileRun> runs_of(const std::vector<TileClass>& classes) {
  std::vector<TileRun> runs;
  for (std::size_t j = 0; j < classes.size(); ++j) {
    if (classes[j] == TileClass::empty) continue;
    const auto column = static_cast<std::int32_t>(j);
    if (!runs.empty() && runs.back().end == column && runs.back().tile_class == classes[j]) {
      ++runs.back().end;
    } else {
      runs.push_back({column, column + 1, classes[j]});
    }
  }
  return runs;
}

void expect_runs(const TileRuns& runs, const std::vector<std::vector<TileClass>>& classes) {
  RC_ASSERT(runs.rows() == static_cast<std::int64_t>(classes.size()));
  std::int64_t tiles = 0;
  for (std::size_t i = 0; i < classes.size(); ++i) {
    const auto row = runs.row(static_cast<std::int64_t>(i));
    RC_ASSERT(std::vector<TileRun>(row.begin(), row.end()) == runs_of(classes[i]));
    tiles += std::count_if(classes[i].begin(), classes[i].end(),
                           [](TileClass c) { return c != TileClass::empty; });
  }
  RC_ASSERT(runs.tiles() == tiles);
}

RC_GTEST_PROP(ForEachRow, VisitsTheKeysOfEveryQuery, ()) {
  const Mask mask = oracle::random_mask().mask;
  for (int head = 0; head < mask.heads(); ++head) {
    std::int64_t next = 0;
    for_each_row(mask, head, [&](std::int64_t q, const std::vector<Range>& keys) {
      RC_ASSERT(q == next++);
      RC_ASSERT(keys == mask.key_intervals(head, q));
    });
    RC_ASSERT(next == mask.q_tokens());
  }
}

RC_GTEST_PROP(TileRuns, AgreeWithTheDenseMatrix, ()) {
  const RandomMask random = oracle::random_mask();
  const auto tile_m = *rc::gen::inRange<std::int64_t>(1, 20);
  const auto tile_n = *rc::gen::inRange<std::int64_t>(1, 20);
  const std::int64_t columns = (random.mask.k_tokens() + tile_n - 1) / tile_n;
  for (int head = 0; head < random.mask.heads(); ++head) {
    const auto classes = classes_of(random.heads[static_cast<std::size_t>(head)], tile_m, tile_n);
    const TileRuns runs = tile_runs(random.mask, head, tile_m, tile_n);
    const TileRuns transposed = transposed_tile_runs(random.mask, head, tile_m, tile_n);
    expect_runs(runs, classes);
    RC_ASSERT(runs.tile_m == tile_m && runs.tile_n == tile_n);
    RC_ASSERT(transposed.tile_m == tile_m && transposed.tile_n == tile_n);
    if (random.mask.q_tokens() > 0) {
      expect_runs(transposed, transpose(classes, static_cast<std::size_t>(columns)));
    } else {
      RC_ASSERT(transposed.tiles() == 0 && transposed.rows() == columns);
    }
  }
}

RC_GTEST_PROP(BlockBitmap, AgreesWithTheDenseMatrix, ()) {
  const RandomMask random = oracle::random_mask();
  const auto block_m = *rc::gen::inRange<std::int64_t>(1, 20);
  const auto block_n = *rc::gen::inRange<std::int64_t>(1, 20);
  for (int head = 0; head < random.mask.heads(); ++head) {
    const BlockBitmap bitmap = block_bitmap(random.mask, head, block_m, block_n);
    std::vector<TileClass> expected;
    for (const auto& row :
         classes_of(random.heads[static_cast<std::size_t>(head)], block_m, block_n)) {
      expected.insert(expected.end(), row.begin(), row.end());
    }
    RC_ASSERT(bitmap.classes == expected);
    RC_ASSERT(bitmap.rows == (random.mask.q_tokens() + block_m - 1) / block_m);
    RC_ASSERT(bitmap.columns == (random.mask.k_tokens() + block_n - 1) / block_n);
  }
}

TEST(TileRuns, ACutTileThatIsAllAllowedIsFull) {
  const Mask full = Mask::from_slices(10, 10, {{0, 10, 0, 10, MaskSliceType::full}});
  const TileRuns runs = tile_runs(full, 0, 4, 4);
  ASSERT_EQ(runs.rows(), 3);
  for (std::int64_t i = 0; i < 3; ++i) {
    ASSERT_EQ(runs.row(i).size(), 1U);
    EXPECT_EQ(runs.row(i)[0], (TileRun{0, 3, TileClass::full}));
  }
}

TEST(TileRuns, AtFullLengthMatchTheAreaOfTheMask) {
  for (const MaskTraits& traits : mask_table()) {
    if (traits.uses_blocks) continue;
    MaskSpec spec;
    spec.name = traits.name;
    spec.tokens = 786432;
    spec.lengths = "pile";
    const Mask mask = generate_mask(spec).mask;
    const TileRuns runs = tile_runs(mask, 0, 128, 128);
    std::int64_t area = 0;
    for (std::int64_t i = 0; i < runs.rows(); ++i) {
      for (const TileRun& run : runs.row(i)) {
        const Range keys = {run.begin * 128, run.end * 128};
        area += mask.area_in(0, {i * 128, (i + 1) * 128}, keys);
        const TileClass all = mask.tile_class(0, {i * 128, (i + 1) * 128}, keys);
        ASSERT_EQ(all == TileClass::full, run.tile_class == TileClass::full) << traits.name;
      }
    }
    EXPECT_EQ(area, mask.area(0)) << traits.name;
  }
}

TEST(TileRuns, RefuseTilesOfNothing) {
  const Mask mask = Mask::from_slices(4, 4, {});
  EXPECT_THROW(tile_runs(mask, 0, 0, 4), InternalError);
  EXPECT_THROW(tile_runs(mask, 1, 4, 4), InternalError);
}

}  // namespace
}  // namespace longca
