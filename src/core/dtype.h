#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace longca {

enum class DType : std::uint8_t { float32, bfloat16, float16 };
inline constexpr DType kDTypes[] = {DType::float32, DType::bfloat16, DType::float16};

/// "float32", "bfloat16", "float16".
constexpr std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::float32:
      return "float32";
    case DType::bfloat16:
      return "bfloat16";
    case DType::float16:
      return "float16";
  }
  return "?";
}

constexpr std::optional<DType> parse_dtype(std::string_view text) {
  for (const DType dtype : kDTypes) {
    if (to_string(dtype) == text) return dtype;
  }
  return std::nullopt;
}

/// Bytes of an element.
constexpr std::int64_t size_of(DType dtype) {
  return dtype == DType::float32 ? 4 : 2;
}

/// A bfloat16 number, stored as the upper 16 bits of the float32.
struct BFloat16 {
  std::uint16_t bits = 0;

  BFloat16() = default;
  /// Rounds to nearest, ties to even; NaN stays NaN.
  explicit constexpr BFloat16(float value) {
    const auto u = std::bit_cast<std::uint32_t>(value);
    const bool is_nan = (u & 0x7fffffffu) > 0x7f800000u;
    bits = is_nan ? static_cast<std::uint16_t>((u >> 16) | 0x40u)
                  : static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
  }
  explicit constexpr operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};
static_assert(sizeof(BFloat16) == 2);

/// A float16 number (IEEE 754 binary16).
struct Float16 {
  std::uint16_t bits = 0;

  Float16() = default;
  /// Rounds to nearest, ties to even, to ±∞ from 65520 on; NaN stays NaN.
  explicit constexpr Float16(float value) {
    const auto u = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t magnitude = u & 0x7fffffffu;
    std::uint32_t rounded = 0;
    if (magnitude > 0x7f800000u) {
      rounded = 0x7e00u;
    } else if (magnitude >= 0x477ff000u) {  // 65520
      rounded = 0x7c00u;
    } else if (magnitude < 0x38800000u) {  // 2⁻¹⁴: below, steps of 2⁻²⁴, which are those of 0.5
      const float sum = std::bit_cast<float>(magnitude) + 0.5f;
      rounded = std::bit_cast<std::uint32_t>(sum) - 0x3f000000u;
    } else {  // the exponent's bias goes from 127 to 15
      rounded = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    }
    bits = static_cast<std::uint16_t>((u >> 16 & 0x8000u) | rounded);
  }
  explicit constexpr operator float() const {
    const std::uint32_t sign = (bits & 0x8000u) << 16;
    const std::uint32_t magnitude = (bits & 0x7fffu) << 13;
    const bool special = (bits & 0x7c00u) == 0x7c00u;
    // 2¹¹² moves the exponent's bias from 15 to 127, and makes subnormal numbers normal.
    const float value = special ? std::bit_cast<float>(magnitude | 0x7f800000u)
                                : std::bit_cast<float>(magnitude) * 0x1p112f;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | sign);
  }
};
static_assert(sizeof(Float16) == 2);

/// Calls `body` with a value of the type of `dtype`'s elements: float, BFloat16 or Float16.
template <typename Body>
constexpr decltype(auto) with_type_of(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::bfloat16:
      return body(BFloat16());
    case DType::float16:
      return body(Float16());
    case DType::float32:
      break;
  }
  return body(float());
}

}  // namespace longca
