#pragma once

#include <concepts>
#include <type_traits>

#ifdef __CUDACC__
#define LONGCA_ROUNDING_HOST_DEVICE __host__ __device__
#else
#define LONGCA_ROUNDING_HOST_DEVICE
#endif

namespace longca {

/// ⌈value / divisor⌉ in the operands' common type, which has to hold value + divisor − 1; the value
/// is not negative and the divisor is positive.
template <std::integral Value, std::integral Divisor>
LONGCA_ROUNDING_HOST_DEVICE constexpr auto ceil_div(Value value, Divisor divisor) {
  using Common = std::common_type_t<Value, Divisor>;
  const auto wide = static_cast<Common>(divisor);
  return static_cast<Common>((static_cast<Common>(value) + wide - 1) / wide);
}

/// The smallest multiple of `unit` that is not below `value`, under the conditions of ceil_div.
template <std::integral Value, std::integral Unit>
LONGCA_ROUNDING_HOST_DEVICE constexpr auto round_up(Value value, Unit unit) {
  using Common = std::common_type_t<Value, Unit>;
  return static_cast<Common>(ceil_div(value, unit) * static_cast<Common>(unit));
}

}  // namespace longca

#undef LONGCA_ROUNDING_HOST_DEVICE
