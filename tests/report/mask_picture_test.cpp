#include "report/mask_picture.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "mask/generators.h"

namespace longca::testing {
namespace {

/// The shoelace formula.
double area_of(const Polygon& polygon) {
  double twice = 0;
  for (std::size_t i = 0; i < polygon.size(); ++i) {
    const Point& a = polygon[i];
    const Point& b = polygon[(i + 1) % polygon.size()];
    twice += a.key * b.query - b.key * a.query;
  }
  return std::abs(twice) / 2;
}

MaskSlice random_slice(std::int64_t max_rows) {
  MaskSlice slice;
  slice.q_begin = *rc::gen::inRange<std::int64_t>(0, 50);
  slice.q_end = slice.q_begin + *rc::gen::inRange<std::int64_t>(1, max_rows + 1);
  slice.k_begin = *rc::gen::inRange<std::int64_t>(0, 50);
  slice.k_end = slice.k_begin + *rc::gen::inRange<std::int64_t>(1, max_rows + 1);
  slice.type = *rc::gen::element(MaskSliceType::full, MaskSliceType::causal,
                                 MaskSliceType::inverse_causal, MaskSliceType::bi_causal);
  return slice;
}

RC_GTEST_PROP(SliceOutline, WithStepsHasExactlyTheSlicesCells, ()) {
  const MaskSlice slice = random_slice(64);
  RC_ASSERT(area_of(slice_outline(slice)) == static_cast<double>(slice.area()));
}

RC_GTEST_PROP(SliceOutline, WithStraightDiagonalsHasItsCellsButAtTheirEnds, ()) {
  MaskSlice slice = random_slice(500);
  slice.q_end += 64;
  const double difference = static_cast<double>(slice.area()) - area_of(slice_outline(slice));
  RC_ASSERT(std::abs(difference) <= 4 * 0.125 + 1e-6);  // of half a step at either end of two
}

TEST(SliceOutline, OfOneDiagonalIsThere) {
  const MaskSlice diagonal{0, 200, 0, 200, MaskSliceType::bi_causal};
  EXPECT_NEAR(area_of(slice_outline(diagonal)), 200, 0.5);
}

RC_GTEST_PROP(SliceOutline, StaysInsideTheSlice, ()) {
  const MaskSlice slice = random_slice(300);
  for (const Point& p : slice_outline(slice)) {
    RC_ASSERT(p.query >= static_cast<double>(slice.q_begin));
    RC_ASSERT(p.query <= static_cast<double>(slice.q_end));
    RC_ASSERT(p.key >= static_cast<double>(slice.k_begin));
    RC_ASSERT(p.key <= static_cast<double>(slice.k_end));
  }
}

double shaded_area(const Mask& mask) {
  double area = 0;
  for (const MaskShape& shape : mask_shapes(mask, 0)) {
    for (const Polygon& polygon : shape.polygons) area += shape.share * area_of(polygon);
  }
  return area;
}

MaskSpec small_spec(const std::string& name, std::int64_t tokens) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = tokens;
  spec.window = tokens / 8;
  spec.block_tokens = 1 + tokens / 16;
  spec.block = 4;
  return spec;
}

TEST(MaskShapes, OfSmallMasksCoverExactlyTheirCells) {
  for (const MaskTraits& traits : mask_table()) {
    for (const std::int64_t tokens : {1, 2, 37, 64}) {
      const Mask mask = generate_mask(small_spec(traits.name, tokens)).mask;
      EXPECT_DOUBLE_EQ(shaded_area(mask), static_cast<double>(mask.area(0)))
          << traits.name << ' ' << tokens;
    }
  }
}

TEST(MaskShapes, OfLargeMasksCoverNearlyTheirCells) {
  for (const MaskTraits& traits : mask_table()) {
    MaskSpec spec = small_spec(traits.name, 16384);
    spec.block = 16;  // 1024 blocks: drawn as 64 squares in eighths
    const Mask mask = generate_mask(spec).mask;
    const double cells = 16384.0 * 16384.0;
    EXPECT_NEAR(shaded_area(mask) / cells, static_cast<double>(mask.area(0)) / cells, 0.01)
        << traits.name;
    EXPECT_LE(mask_shapes(mask, 0).size(), 8U);
  }
}

TEST(MaskShapes, OfAnEmptyMaskAreNone) {
  EXPECT_TRUE(mask_shapes(Mask::from_slices(0, 0, {}), 0).empty());
  EXPECT_TRUE(mask_shapes(Mask::from_slices(8, 8, {}), 0).empty());
}

}  // namespace
}  // namespace longca::testing
