#pragma once

#include <numbers>

namespace longca {

/// Kernels exponentiate to the base 2, and give LSE in natural logarithms.
inline constexpr float kLog2E = std::numbers::log2e_v<float>;
inline constexpr float kLn2 = std::numbers::ln2_v<float>;

}  // namespace longca
