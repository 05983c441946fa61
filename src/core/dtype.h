#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace longca {

enum class DType : std::uint8_t { float32, bfloat16, float16 };

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
  for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
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

}  // namespace longca
