#pragma once

#include <cstdint>
#include <vector>

namespace longca::calibrate {

/// Two square matrices A and B of whole numbers from −1 to 1, whose product C = A · Bᵀ is exact in
/// float32 up to 2^24 columns, whatever the order of its sums.
class WholeMatrices {
 public:
  explicit WholeMatrices(std::int64_t rows) : rows_(rows) {}

  std::int64_t rows() const { return rows_; }
  /// Row-major [rows, rows], of float or of bfloat16 bits.
  template <typename T>
  std::vector<T> a() const {
    return matrix<T>(kSeedOfA);
  }
  template <typename T>
  std::vector<T> b() const {
    return matrix<T>(kSeedOfB);
  }

  /// Whether the row-major `c` is the product in every element, by Freivalds' check (Information
  /// Processing 77, 1977): C · x = A · (Bᵀ · x), exactly, for a vector x drawn from `seed`. One
  /// wrong element shows for certain, several hide with a probability of at most 1 / 256. A NaN
  /// never passes.
  bool are_multiplied_to(const std::vector<float>& c, std::uint64_t seed) const;

 private:
  static constexpr std::uint64_t kSeedOfA = 1;
  static constexpr std::uint64_t kSeedOfB = 2;

  template <typename T>
  std::vector<T> matrix(std::uint64_t seed) const;

  std::int64_t rows_;
};

}  // namespace longca::calibrate
