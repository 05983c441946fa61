#include "attention/reference/tile_math.h"

// foreach_target includes this file once per target and must come first.
// clang-format off
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/reference/tile_math.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
#include <hwy/contrib/math/math-inl.h>
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace longca {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::int64_t kLanes = 64;  // columns of b and c

/// At most 16 lanes, so that two vectors divide the 64 columns.
template <typename Real>
using Tag = hn::CappedTag<Real, 16>;

/// Accumulates four rows × two vectors of c in registers over all of k.
template <typename Real>
HWY_INLINE void product_block(const Real* a0, std::int64_t a_row, std::int64_t a_column,
                              const Real* b, Real* c, std::int64_t k) {
  const Tag<Real> tag;
  const auto width = static_cast<std::int64_t>(hn::Lanes(tag));
  const Real* a1 = a0 + a_row;
  const Real* a2 = a1 + a_row;
  const Real* a3 = a2 + a_row;
  auto left0 = hn::Load(tag, c);
  auto left1 = hn::Load(tag, c + kLanes);
  auto left2 = hn::Load(tag, c + 2 * kLanes);
  auto left3 = hn::Load(tag, c + 3 * kLanes);
  auto right0 = hn::Load(tag, c + width);
  auto right1 = hn::Load(tag, c + kLanes + width);
  auto right2 = hn::Load(tag, c + 2 * kLanes + width);
  auto right3 = hn::Load(tag, c + 3 * kLanes + width);
  for (std::int64_t i = 0; i < k; ++i) {
    const auto left = hn::Load(tag, b + i * kLanes);
    const auto right = hn::Load(tag, b + i * kLanes + width);
    const auto x0 = hn::Set(tag, a0[i * a_column]);
    const auto x1 = hn::Set(tag, a1[i * a_column]);
    const auto x2 = hn::Set(tag, a2[i * a_column]);
    const auto x3 = hn::Set(tag, a3[i * a_column]);
    left0 = hn::MulAdd(x0, left, left0);
    left1 = hn::MulAdd(x1, left, left1);
    left2 = hn::MulAdd(x2, left, left2);
    left3 = hn::MulAdd(x3, left, left3);
    right0 = hn::MulAdd(x0, right, right0);
    right1 = hn::MulAdd(x1, right, right1);
    right2 = hn::MulAdd(x2, right, right2);
    right3 = hn::MulAdd(x3, right, right3);
  }
  hn::Store(left0, tag, c);
  hn::Store(left1, tag, c + kLanes);
  hn::Store(left2, tag, c + 2 * kLanes);
  hn::Store(left3, tag, c + 3 * kLanes);
  hn::Store(right0, tag, c + width);
  hn::Store(right1, tag, c + kLanes + width);
  hn::Store(right2, tag, c + 2 * kLanes + width);
  hn::Store(right3, tag, c + 3 * kLanes + width);
}

template <typename Real>
HWY_INLINE void product(const Real* a, std::int64_t a_row, std::int64_t a_column, const Real* b,
                        Real* c, std::int64_t m, std::int64_t k) {
  const auto step = 2 * static_cast<std::int64_t>(hn::Lanes(Tag<Real>()));
  for (std::int64_t j = 0; j < kLanes; j += step) {
    for (std::int64_t i = 0; i < m; i += 4) {
      product_block(a + i * a_row, a_row, a_column, b + j, c + i * kLanes + j, k);
    }
  }
}

template <typename Real>
HWY_INLINE void exponentials(Real* x, std::int64_t count) {
  const Tag<Real> tag;
  const auto width = static_cast<std::int64_t>(hn::Lanes(tag));
  for (std::int64_t i = 0; i < count; i += width) {
    hn::Store(hn::Exp(tag, hn::Load(tag, x + i)), tag, x + i);
  }
}

template <typename Real>
HWY_INLINE void hyperbolic_tangents(Real* x, std::int64_t count) {
  const Tag<Real> tag;
  const auto width = static_cast<std::int64_t>(hn::Lanes(tag));
  for (std::int64_t i = 0; i < count; i += width) {
    hn::Store(hn::Tanh(tag, hn::Load(tag, x + i)), tag, x + i);
  }
}

}  // namespace

void product_double(const double* a, std::int64_t a_row, std::int64_t a_column, const double* b,
                    double* c, std::int64_t m, std::int64_t k) {
  product(a, a_row, a_column, b, c, m, k);
}
void product_float(const float* a, std::int64_t a_row, std::int64_t a_column, const float* b,
                   float* c, std::int64_t m, std::int64_t k) {
  product(a, a_row, a_column, b, c, m, k);
}
void exp_double(double* x, std::int64_t count) {
  exponentials(x, count);
}
void exp_float(float* x, std::int64_t count) {
  exponentials(x, count);
}
void tanh_double(double* x, std::int64_t count) {
  hyperbolic_tangents(x, count);
}
void tanh_float(float* x, std::int64_t count) {
  hyperbolic_tangents(x, count);
}

}  // namespace HWY_NAMESPACE
}  // namespace longca
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace longca {

HWY_EXPORT(product_double);
HWY_EXPORT(product_float);
HWY_EXPORT(exp_double);
HWY_EXPORT(exp_float);
HWY_EXPORT(tanh_double);
HWY_EXPORT(tanh_float);

template <>
void tile_product(const double* a, std::int64_t a_row, std::int64_t a_column, const double* b,
                  double* c, std::int64_t m, std::int64_t k) {
  HWY_DYNAMIC_DISPATCH(product_double)(a, a_row, a_column, b, c, m, k);
}
template <>
void tile_product(const float* a, std::int64_t a_row, std::int64_t a_column, const float* b,
                  float* c, std::int64_t m, std::int64_t k) {
  HWY_DYNAMIC_DISPATCH(product_float)(a, a_row, a_column, b, c, m, k);
}
template <>
void exp_in_place(double* x, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(exp_double)(x, count);
}
template <>
void exp_in_place(float* x, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(exp_float)(x, count);
}
template <>
void tanh_in_place(double* x, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(tanh_double)(x, count);
}
template <>
void tanh_in_place(float* x, std::int64_t count) {
  HWY_DYNAMIC_DISPATCH(tanh_float)(x, count);
}

}  // namespace longca
#endif
