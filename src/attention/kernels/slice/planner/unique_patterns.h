#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace longca::slice {

/// Patterns of transposed lists, each once: key tiles whose blocks or documents begin alike have
/// the same.
class UniquePatterns {
 public:
  /// Appends to `out`, 128 words a pattern, which nobody else appends to.
  explicit UniquePatterns(std::vector<std::uint64_t>& out) : out_(out) {}

  /// Which pattern of `out` each of `patterns` is.
  std::vector<std::int32_t> add(std::span<const std::uint64_t> patterns);
  std::int32_t add_one(std::span<const std::uint64_t> words);

 private:
  std::vector<std::uint64_t>& out_;
  std::unordered_multimap<std::uint64_t, std::int32_t> places_;  ///< by hash
};

}  // namespace longca::slice
