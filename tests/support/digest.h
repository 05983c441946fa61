#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

namespace longca::testing {

/// FNV-1a over 64-bit words, for golden files: the same on every machine. What is added is named
/// value by value, never taken from an object's memory.
class Digest {
 public:
  template <typename T>
  requires(std::integral<T> || std::is_enum_v<T>) void add(T value) {
    add_word(static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
  }
  void add(double value) { add_word(std::bit_cast<std::uint64_t>(value)); }
  void add(std::string_view text) {
    add(text.size());
    for (const char letter : text) add(letter);
  }
  template <typename T>
  void add(const std::optional<T>& value) {
    add(value.has_value());
    if (value) add(*value);
  }
  /// The length, then the elements, each by its own `digest(Digest&, const T&)` if it has one.
  template <typename T>
  void add(const std::vector<T>& values) {
    add(values.size());
    for (const T& value : values) {
      if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
        add(value);
      } else {
        digest(*this, value);
      }
    }
  }
  template <typename... T>
  requires(sizeof...(T) > 1) void add(const T&... values) { (add(values), ...); }

  std::uint64_t value() const { return state_ ^ state_ >> 32; }

 private:
  void add_word(std::uint64_t word) {
    state_ = (state_ ^ word) * 0x100000001b3U;
    state_ ^= state_ >> 32;
  }

  std::uint64_t state_ = 0xcbf29ce484222325U;
};

}  // namespace longca::testing
