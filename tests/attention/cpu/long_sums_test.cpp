// Sums of thousands of float32 products, as those of large head dimensions and of many keys: their
// error must not grow as that of one chain of additions does.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "attention/cpu/micro_kernels.h"
#include "attention/cpu/naive_math.h"

namespace longca {
namespace {

constexpr std::int64_t kTerms = 4096;
constexpr std::int64_t kColumns = cpu::kPanelKeys;
constexpr std::int64_t kRows = cpu::kGroupRows;

/// Largest relative error of c = a · b, [8, 32] of 4096 positive terms each, in units of 2⁻²⁴. One
/// chain of as many additions is off by 43 of them.
double largest_error(const std::vector<float>& a, const std::vector<float>& b,
                     const std::vector<float>& c) {
  double largest = 0;
  for (std::int64_t i = 0; i < kRows; ++i) {
    for (std::int64_t j = 0; j < kColumns; ++j) {
      double exact = 0;
      for (std::int64_t k = 0; k < kTerms; ++k) {
        exact += static_cast<double>(a[i * kTerms + k]) * static_cast<double>(b[k * kColumns + j]);
      }
      const double error = std::abs(c[i * kColumns + j] - exact) / exact;
      if (!(error <= largest)) largest = error;  // a NaN stays
    }
  }
  return largest * 0x1p24;
}

class LongSums : public ::testing::Test {
 protected:
  LongSums() : a_(kRows * kTerms), b_(kTerms * kColumns), c_(kRows * kColumns) {
    std::mt19937 random(5);
    std::uniform_real_distribution<float> values(0.5F, 1.5F);
    for (std::vector<float>* x : {&a_, &b_}) {
      std::ranges::generate(*x, [&] { return values(random); });
    }
  }

  std::vector<float> a_;
  std::vector<float> b_;
  std::vector<float> c_;
};

TEST_F(LongSums, OfTheBlockedKernels) {
  cpu::float32_kernels().product({.a = a_.data(),
                                  .a_row = kTerms,
                                  .a_step = 1,
                                  .b = b_.data(),
                                  .b_step = kColumns,
                                  .b_panel = 0,
                                  .panels = 1,
                                  .steps = kTerms,
                                  .c = c_.data(),
                                  .c_row = kColumns,
                                  .add = false});
  EXPECT_LE(largest_error(a_, b_, c_), 16);
}

TEST_F(LongSums, OfTheNaiveKernel) {
  naive::multiply_add({a_.data(), kTerms, 1}, b_.data(), kColumns, c_.data(), kColumns, kRows,
                      kColumns, kTerms);
  EXPECT_LE(largest_error(a_, b_, c_), 16);
}

}  // namespace
}  // namespace longca
