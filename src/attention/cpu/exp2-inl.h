// exp2 on vectors; included once per Highway target.
#if defined(LONGCA_CPU_EXP2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LONGCA_CPU_EXP2_INL_H_
#undef LONGCA_CPU_EXP2_INL_H_
#else
#define LONGCA_CPU_EXP2_INL_H_
#endif

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace longca::cpu::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

/// 2^x for x < 128 with relative error below 5·10⁻⁷; x is clamped to at least −126. exp2(0) is
/// exactly 1; NaN stays NaN. 2^x = 2^n · 2^f with n = round(x), and 2^f for |f| ≤ 1/2 by the
/// minimax polynomial 1 + f·(…) of degree 5.
template <class D, class V = hn::Vec<D>>
HWY_INLINE V exp2(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  // Adding 1.5·2²³ leaves round(x) in the low bits of the sum.
  const V magic = hn::Set(d, 12582912.0F);
  const V lowest = hn::Set(d, -126.0F);
  const V clamped =
      hn::IfThenElse(hn::Lt(x, lowest), lowest, x);  // Max would drop NaN on some CPUs
  const V shifted = hn::Add(clamped, magic);
  const V f = hn::Sub(clamped, hn::Sub(shifted, magic));
  V p = hn::MulAdd(hn::Set(d, 0.00111255073F), f, hn::Set(d, 0.00966628268F));
  p = hn::MulAdd(p, f, hn::Set(d, 0.0555740036F));
  p = hn::MulAdd(p, f, hn::Set(d, 0.240223512F));
  p = hn::MulAdd(p, f, hn::Set(d, 0.693142831F));
  p = hn::MulAdd(p, f, hn::Set(d, 1.0F));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(du, shifted));
  return hn::BitCast(d, hn::Add(hn::BitCast(du, p), exponent));
}

}  // namespace
}  // namespace longca::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
