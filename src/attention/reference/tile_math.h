#pragma once

#include <cstdint>

namespace longca {

/// c[m, 64] += Σ_k a(m, k) · b[k, 64] with a(m, k) = a[m · a_row + k · a_column], for float and
/// double. b and c are dense and 64-byte aligned, m is a multiple of 4. Terms are added in order of
/// k.
template <typename Real>
void tile_product(const Real* a, std::int64_t a_row, std::int64_t a_column, const Real* b, Real* c,
                  std::int64_t m, std::int64_t k);

/// x ← exp(x) for `count` numbers, a multiple of 64, 64-byte aligned; −∞ gives 0.
template <typename Real>
void exp_in_place(Real* x, std::int64_t count);

/// x ← tanh(x), likewise, with an error of at most 4 ulp.
template <typename Real>
void tanh_in_place(Real* x, std::int64_t count);

}  // namespace longca
