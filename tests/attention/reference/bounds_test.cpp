#include "attention/reference/bounds.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace longca {
namespace {

constexpr std::int64_t kDim = 4;
constexpr std::uint64_t kAll = ~std::uint64_t{0};

/// One tile of a head of float32, equal to its reference.
struct Tile {
  HostTensor tensor{DType::float32, kTile, 1, kDim};
  std::vector<double> exact = std::vector<double>(kTile * kDim, 0.5);
  TileBound bound{1e-3, 1e-4};

  Tile() { std::fill_n(tensor.view().row<float>(0, 0), kTile * kDim, 0.5F); }
  float& at(std::int64_t token, std::int64_t column) {
    return tensor.view().row<float>(token, 0)[column];
  }
  TileError compare(std::uint64_t reached = kAll) const {
    return compare_tile(tensor.view(), 0, 0, exact, reached, bound);
  }
};

TEST(CompareTile, EqualIsZero) {
  EXPECT_EQ(Tile().compare().ratio, 0);
}

TEST(CompareTile, OneElementIsHeldToItsOwnBound) {
  Tile tile;
  tile.at(37, 2) += 2e-4F;
  const TileError error = tile.compare();
  EXPECT_NEAR(error.ratio, 2, 0.01);
  EXPECT_LT(std::sqrt(error.squared), tile.bound.norm);
  EXPECT_EQ(error.token, 37);
  EXPECT_EQ(error.column, 2);
  EXPECT_EQ(error.expected, 0.5);
}

TEST(CompareTile, ManySmallErrorsAreHeldToTheNorm) {
  Tile tile;
  for (std::int64_t i = 0; i < kTile * kDim; ++i) tile.at(0, i) += 9e-5F;
  const TileError error = tile.compare();
  EXPECT_LT(error.largest, tile.bound.element);
  EXPECT_NEAR(error.ratio, 1.44, 0.01);
}

TEST(CompareTile, NaNAndInfinityAreInfinitelyWrongAndNamed) {
  for (const float value :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    Tile tile;
    tile.at(3, 1) = 100;  // large, but not the first to name
    tile.at(5, 1) = value;
    const TileError error = tile.compare();
    EXPECT_EQ(error.ratio, std::numeric_limits<double>::infinity());
    EXPECT_EQ(error.token, 5);
    tile.bound = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    EXPECT_GT(tile.compare().ratio, 1);
  }
}

TEST(CompareTile, WhatIsNotReachedMustBeExactlyZero) {
  Tile tile;
  tile.bound = {100, 100};
  tile.exact.assign(tile.exact.size(), 0.0);
  std::fill_n(&tile.at(0, 0), kTile * kDim, 0.0F);
  tile.at(7, 0) = -0.0F;
  EXPECT_EQ(tile.compare(0).ratio, 0);
  tile.at(9, 1) = std::numeric_limits<float>::denorm_min();
  EXPECT_LT(tile.compare(kAll).ratio, 1);
  const TileError error = tile.compare(kAll & ~(std::uint64_t{1} << 9));
  EXPECT_EQ(error.ratio, std::numeric_limits<double>::infinity());
  EXPECT_TRUE(error.must_be_zero);
  EXPECT_EQ(error.token, 9);
}

TEST(CompareTile, TokensPastTheEndAreNotRead) {
  const HostTensor tensor(DType::bfloat16, kTile + 3, 1, kDim);
  for (std::int64_t t = 0; t < kTile + 3; ++t) {
    std::fill_n(tensor.view().row<BFloat16>(t, 0), kDim, BFloat16(0.5F));
  }
  std::vector<double> exact(kTile * kDim, 0.0);
  std::fill_n(exact.begin(), 3 * kDim, 0.5);
  EXPECT_EQ(compare_tile(tensor.view(), 0, kTile, exact, 7, {0, 0}).ratio, 0);
}

TEST(MakeBound, IsTwiceTheEmulationsErrorPlusTheFloor) {
  const std::vector<double> exact(100, 1.0);
  std::vector<float> same(100, 1.0F);
  const TileBound floor = make_bound(exact, same, {}, 9, DType::bfloat16);
  EXPECT_NEAR(floor.norm, 10 * (0x1p-8 + 40 * 0x1p-24), 1e-12);
  EXPECT_EQ(floor.element, floor.norm);
  same[4] += 0.25F;
  const TileBound bound = make_bound(exact, same, {}, 9, DType::bfloat16);
  EXPECT_NEAR(bound.norm - floor.norm, 0.5, 1e-12);
  EXPECT_NEAR(bound.element - floor.element, 1.0, 1e-12);
  EXPECT_NEAR(make_bound(exact, same, {.squared = 900}, 9, DType::bfloat16).norm - bound.norm,
              20 * (0x1p-8 + 32 * 0x1p-24), 1e-12);
}

TEST(MakeBound, HasLessRoomForMoreDrawsAndForFloat32) {
  const std::vector<double> exact(100, 1.0);
  const std::vector<float> same(100, 1.0F);
  const double few = make_bound(exact, same, {}, 1, DType::bfloat16).norm;
  EXPECT_NEAR(few / make_bound(exact, same, {}, 64, DType::bfloat16).norm, 8, 0.1);
  EXPECT_LT(make_bound(exact, same, {}, 1, DType::float32).norm, few / 1000);
}

TEST(MakeBound, HasRoomForTheRoundingsOfScores) {
  const std::vector<double> exact(100, 1.0);
  const std::vector<float> same(100, 1.0F);
  const auto norm = [&](double score, std::int64_t rows) {
    return make_bound(exact, same, {.score = score}, rows, DType::float32).norm;
  };
  EXPECT_NEAR(norm(50, 1) - norm(0, 1), 10 * 100 * 0x1p-24, 1e-9);
  EXPECT_NEAR(norm(50, 64) - norm(0, 64), 10 * 12.5 * 0x1p-24, 1e-9);
}

TEST(MakeBound, HasRoomForTheSlopesOfACapFarBelowScoresAndNextToNoneForTheCapsOfModels) {
  const std::vector<double> exact(100, 1.0);
  const std::vector<float> same(100, 1.0F);
  const auto norm = [&](double score, double softcap) {
    return make_bound(exact, same, {.score = score, .softcap = softcap}, 1, DType::float32).norm;
  };
  EXPECT_NEAR(norm(50, 0.1) - norm(50, 0), 10 * 100 * 20 * 0x1p-24, 1e-9);
  EXPECT_NEAR(norm(10, 30) - norm(10, 0), 10 * 20 * (20.0 / 900) * 0x1p-24, 1e-9);
  EXPECT_LT(norm(100, 30), 1.07 * norm(100, 0));
}

TEST(MakeBound, ANaNInTheEmulationAllowsNothing) {
  const std::vector<double> exact(4, 1.0);
  const std::vector<float> same(4, std::numeric_limits<float>::quiet_NaN());
  Tile tile;
  tile.bound = make_bound(exact, same, {}, 4, DType::float32);
  tile.at(0, 0) += 0.1F;
  EXPECT_FALSE(tile.compare().ratio <= 1);
}

TEST(LseBound, IsFarBelowWhatAMaskFaultMoves) {
  const double normal = 11.3 * 1.5;  // scale ‖q‖ ‖k‖ of normal inputs at d = 128
  EXPECT_LT(lse_bound(normal, std::log(1e6), 1e6),
            -std::log1p(-64e-6));             // a tile of a million keys
  EXPECT_GT(lse_bound(normal, 10, 0), 2e-6);  // what float32 kernels have been seen to reach
}

/// Tiles whose sum lies in few rows have as few rounding errors. Where rows differ as those of
/// normal inputs do, draws are what they were.
TEST(TileTerms, CountTheRowsThatMatter) {
  TileTerms even;
  TileTerms causal;
  TileTerms peaked;
  for (int row = 0; row < 64; ++row) {
    even.add_row(3);
    causal.add_row(1.0 / (row + 1));
    peaked.add_row(row < 2 ? 1 : 1e-6);
  }
  EXPECT_EQ(even.draws(64), 64);
  EXPECT_EQ(even.draws(3), 3);
  EXPECT_EQ(causal.draws(64), 64);
  EXPECT_EQ(peaked.draws(64), 11);
  EXPECT_EQ(TileTerms{}.draws(64), 64);
  EXPECT_DOUBLE_EQ(even.magnitude(), std::sqrt(192.0));
}

/// Sums of exponentials one after the other in float32, as the threads of a kernel form them: a
/// sixth of the bound's last part lies above their usual error, and the bound is not far above the
/// worst.
TEST(LseBound, GrowsAsSumsOfFloat32Do) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  constexpr int kKeys = 1 << 16;
  double squared = 0;
  double worst = 0;
  constexpr int kRows = 200;
  for (int row = 0; row < kRows; ++row) {
    float sum = 0;
    double exact = 0;
    for (int i = 0; i < kKeys; ++i) {
      const auto term = static_cast<float>(std::exp(normal(random)));
      sum += term;
      exact += double{term};
    }
    const double error = std::abs(std::log(double{sum} / exact));
    squared += error * error / kRows;
    worst = std::max(worst, error);
  }
  const double more = lse_bound(0, 0, kKeys) - lse_bound(0, 0, 0);
  EXPECT_GT(more, 2 * std::sqrt(squared));
  EXPECT_LT(more, 12 * std::sqrt(squared));
  EXPECT_LT(worst, lse_bound(11.3 * 1.5, std::log(kKeys), kKeys));
}

}  // namespace
}  // namespace longca
