// tanh on vectors; included once per Highway target.
#if defined(LONGCA_CPU_TANH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LONGCA_CPU_TANH_INL_H_
#undef LONGCA_CPU_TANH_INL_H_
#else
#define LONGCA_CPU_TANH_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace longca::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// tanh(x) with relative error below 5·10⁻⁷ and magnitude at most 1; NaN stays NaN. x · P(x²) /
/// Q(x²) of degrees 4 and 4, a minimax approximation on |x| ≤ 9.01, from where on tanh rounds to
/// ±1.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V tanh(D d, V x) {
  const V end = hn::Set(d, 9.01F);
  const V magnitude = hn::Abs(x);
  const V clamped = hn::IfThenElse(hn::Gt(magnitude, end), hn::CopySign(end, x), x);
  const V y = hn::Mul(clamped, clamped);
  V p = hn::MulAdd(hn::Set(d, 1.3337819737557766e-08F), y, hn::Set(d, 2.059704092971515e-05F));
  p = hn::MulAdd(p, y, hn::Set(d, 0.0034948603715747595F));
  p = hn::MulAdd(p, y, hn::Set(d, 0.13380414247512817F));
  p = hn::MulAdd(p, y, hn::Set(d, 1.0F));
  V q = hn::MulAdd(hn::Set(d, 7.769700118842593e-07F), y, hn::Set(d, 0.0003284442063886672F));
  q = hn::MulAdd(q, y, hn::Set(d, 0.025874216109514236F));
  q = hn::MulAdd(q, y, hn::Set(d, 0.46713730692863464F));
  q = hn::MulAdd(q, y, hn::Set(d, 1.0F));
  const V t = hn::Div(hn::Mul(clamped, p), q);
  const V one = hn::Set(d, 1.0F);
  return hn::IfThenElse(hn::Gt(hn::Abs(t), one), hn::CopySign(one, x), t);
}

}  // namespace
}  // namespace longca::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
