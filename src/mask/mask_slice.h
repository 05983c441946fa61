#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace longca {

/// Most queries or keys of a mask: areas stay exact in 64 bits and tile indices fit in 32.
inline constexpr std::int64_t kMaxTokens = std::int64_t{1} << 30;

/// A half-open range [begin, end) of token indices.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  bool operator==(const Range&) const = default;
};

enum class MaskSliceType : std::uint8_t {
  full,            ///< every cell of the rectangle
  causal,          ///< k − k_end ≤ q − q_end: aligned to the bottom-right corner
  inverse_causal,  ///< k − k_begin ≥ q − q_begin: aligned to the top-left corner
  bi_causal,       ///< both of the above
};

/// "full", "causal", "inverse_causal", "bi_causal".
std::string_view to_string(MaskSliceType type);
std::optional<MaskSliceType> parse_slice_type(std::string_view text);

/// A rectangle of (query, key) cells cut by at most two diagonals: the unit every mask is made of.
struct MaskSlice {
  std::int64_t q_begin = 0;
  std::int64_t q_end = 0;
  std::int64_t k_begin = 0;
  std::int64_t k_end = 0;
  MaskSliceType type = MaskSliceType::full;

  /// Keys that query q may see, {k_begin, k_begin} if none.
  Range keys_of(std::int64_t q) const;
  bool allows(std::int64_t q, std::int64_t k) const;
  /// Number of allowed cells; O(1).
  std::int64_t area() const;
  bool operator==(const MaskSlice&) const = default;
};

/// "[0, 64) × [0, 128) causal": queries × keys, type.
std::string to_string(const MaskSlice& slice);

}  // namespace longca
