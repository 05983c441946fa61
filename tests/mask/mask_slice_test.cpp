#include "mask/mask_slice.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "mask/oracle.h"

namespace longca {
namespace {

using oracle::Dense;

TEST(MaskSlice, TypesHaveNames) {
  for (const MaskSliceType type : {MaskSliceType::full, MaskSliceType::causal,
                                   MaskSliceType::inverse_causal, MaskSliceType::bi_causal}) {
    EXPECT_EQ(parse_slice_type(to_string(type)), type);
  }
  EXPECT_EQ(parse_slice_type("diagonal"), std::nullopt);
  EXPECT_EQ(to_string(MaskSlice{0, 4, 2, 8, MaskSliceType::causal}), "[0, 4) × [2, 8) causal");
}

TEST(MaskSlice, CausalIsAlignedToTheBottomRightCorner) {
  const MaskSlice slice = {10, 12, 0, 5, MaskSliceType::causal};
  EXPECT_EQ(slice.keys_of(10), (Range{0, 4}));
  EXPECT_EQ(slice.keys_of(11), (Range{0, 5}));
  EXPECT_EQ(slice.area(), 9);
}

TEST(MaskSlice, InverseCausalIsAlignedToTheTopLeftCorner) {
  const MaskSlice slice = {10, 12, 0, 5, MaskSliceType::inverse_causal};
  EXPECT_EQ(slice.keys_of(10), (Range{0, 5}));
  EXPECT_EQ(slice.keys_of(11), (Range{1, 5}));
  EXPECT_EQ(slice.area(), 9);
}

TEST(Bands, HaveRowsWhereTheyHaveCells) {
  const std::vector<Band> bands = {Band::of({10, 12, 0, 5, MaskSliceType::full}),
                                   Band::of({0, 8, 0, 4, MaskSliceType::causal}),
                                   Band{{3, 6}, {0, 0}}};
  EXPECT_EQ(rows_of(bands), (std::vector<Range>{{10, 12}, {4, 8}, {3, 3}}));
}

TEST(MaskSlice, AreasAreExactAtTheLimit) {
  const std::int64_t n = kMaxTokens;
  EXPECT_EQ((MaskSlice{0, n, 0, n, MaskSliceType::full}).area(), n * n);
  EXPECT_EQ((MaskSlice{0, n, 0, n, MaskSliceType::causal}).area(), n * (n + 1) / 2);
  EXPECT_EQ((MaskSlice{0, n, 0, n, MaskSliceType::bi_causal}).area(), n);
}

RC_GTEST_PROP(MaskSlice, AgreesWithItsDefinition, ()) {
  const std::int64_t q_tokens = oracle::random_tokens();
  const std::int64_t k_tokens = oracle::random_tokens();
  const MaskSlice slice = oracle::random_slices(q_tokens, k_tokens, 1).front();
  const Dense dense(q_tokens, k_tokens,
                    [&](auto q, auto k) { return oracle::slice_allows(slice, q, k); });
  RC_ASSERT(slice.area() == dense.area());
  for (std::int64_t q = 0; q < q_tokens; ++q) {
    const Range keys = slice.keys_of(q);
    const std::vector<Range> expected = dense.row_intervals(q);
    const Range nothing = {slice.k_begin, slice.k_begin};
    RC_ASSERT(keys == (expected.empty() ? nothing : expected.front()));
    RC_ASSERT(expected.size() <= 1U);
    for (std::int64_t k = 0; k < k_tokens; ++k) {
      RC_ASSERT(slice.allows(q, k) == (dense.at(q, k) != 0));
    }
  }
}

struct BandAndCells {
  Band band;
  Dense cells;
};

BandAndCells random_band(std::int64_t q_tokens, std::int64_t k_tokens) {
  const auto limit = [&](std::int64_t none) {
    return *rc::gen::weightedOneOf<std::int64_t>(
        {{1, rc::gen::just(none)}, {5, rc::gen::inRange<std::int64_t>(-45, 46)}});
  };
  const Band band = {oracle::random_range(q_tokens), oracle::random_range(k_tokens),
                     limit(-kNoLimit), limit(kNoLimit)};
  return {band, Dense(q_tokens, k_tokens, [&](auto q, auto k) {
            return q >= band.q.begin && q < band.q.end && k >= band.k.begin && k < band.k.end &&
                   k - q >= band.lo && k - q <= band.hi;
          })};
}

RC_GTEST_PROP(Band, BecomesAtMostThreeDisjointSlices, ()) {
  const std::int64_t q_tokens = oracle::random_tokens();
  const std::int64_t k_tokens = oracle::random_tokens();
  const auto [band, cells] = random_band(q_tokens, k_tokens);
  std::vector<MaskSlice> slices;
  append_band(slices, band);
  RC_ASSERT(slices.size() <= 3U);
  Dense sum(q_tokens, k_tokens);
  for (const MaskSlice& slice : slices) {
    RC_ASSERT(slice.area() > 0);
    RC_ASSERT(slice.q_begin >= 0 && slice.q_end <= q_tokens);
    RC_ASSERT(slice.k_begin >= 0 && slice.k_end <= k_tokens);
    for (std::int64_t q = 0; q < q_tokens; ++q) {
      for (std::int64_t k = 0; k < k_tokens; ++k) {
        if (oracle::slice_allows(slice, q, k)) ++sum.at(q, k);
      }
    }
  }
  RC_ASSERT(sum == cells);
}

RC_GTEST_PROP(Band, AreaRowsAndIntersectionAgreeWithTheCells, ()) {
  const std::int64_t q_tokens = oracle::random_tokens();
  const std::int64_t k_tokens = oracle::random_tokens();
  const auto [band, cells] = random_band(q_tokens, k_tokens);
  const auto [other, other_cells] = random_band(q_tokens, k_tokens);
  RC_ASSERT(band.area() == cells.area());
  RC_ASSERT(band.transposed().area() == cells.area());
  RC_ASSERT(band.empty() == (cells.area() == 0));
  for (std::int64_t q = 0; q < q_tokens; ++q) {
    const bool inside = q >= band.rows().begin && q < band.rows().end;
    RC_ASSERT(inside == !cells.row_intervals(q).empty());
  }
  std::int64_t common = 0;
  for (std::size_t i = 0; i < cells.cells.size(); ++i) {
    common += cells.cells[i] * other_cells.cells[i];
  }
  RC_ASSERT(band.intersected(other).area() == common);
  RC_ASSERT(band.intersected(other).empty() == (common == 0));
}

}  // namespace
}  // namespace longca
