#include "calibrate/whole_matrices.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <type_traits>

#include "core/thread_pool.h"

namespace longca::calibrate {
namespace {

/// The finalizer of splitmix64: all bits of the result depend on all of the argument.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

int element(std::uint64_t seed, std::int64_t index) {
  return static_cast<int>(mixed((seed << 48) + static_cast<std::uint64_t>(index)) % 3) - 1;
}

/// −1, 0 and 1 as a T; 16 bits are those of a bfloat16.
template <typename T>
T element_as(int value) {
  if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(value);
  } else {
    constexpr std::array<std::uint16_t, 3> kBits = {0xbf80, 0, 0x3f80};
    return kBits.at(static_cast<unsigned>(value) + 1);
  }
}

void in_parallel(std::int64_t rows, const std::function<void(std::int64_t row)>& body) {
  ThreadPool::global().parallel_for(rows, [&](std::int64_t row, int /*worker*/) { body(row); });
}

/// y[row] = Σ over columns of value(row, column) · x[column].
template <typename ValueAt>
std::vector<double> multiplied(std::int64_t rows, const std::vector<double>& x,
                               const ValueAt& value) {
  std::vector<double> y(x.size());
  in_parallel(rows, [&](std::int64_t row) {
    double sum = 0;
    for (std::int64_t column = 0; column < rows; ++column) {
      sum += value(row, column) * x[static_cast<std::size_t>(column)];
    }
    y[static_cast<std::size_t>(row)] = sum;
  });
  return y;
}

}  // namespace

template <typename T>
std::vector<T> WholeMatrices::matrix(std::uint64_t seed) const {
  std::vector<T> values(static_cast<std::size_t>(rows_ * rows_));
  in_parallel(rows_, [&](std::int64_t row) {
    for (std::int64_t i = row * rows_; i < (row + 1) * rows_; ++i) {
      values[static_cast<std::size_t>(i)] = element_as<T>(element(seed, i));
    }
  });
  return values;
}

template std::vector<float> WholeMatrices::matrix(std::uint64_t) const;
template std::vector<std::uint16_t> WholeMatrices::matrix(std::uint64_t) const;

bool WholeMatrices::are_multiplied_to(const std::vector<float>& c, std::uint64_t seed) const {
  if (c.size() != static_cast<std::size_t>(rows_ * rows_)) return false;
  std::vector<double> x(static_cast<std::size_t>(rows_));
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<double>(mixed(seed + i) % 256 + 1);
  }
  // All sums are whole and below 2^53: none is rounded.
  const std::vector<double> bx = multiplied(rows_, x, [&](std::int64_t row, std::int64_t column) {
    return element(kSeedOfB, column * rows_ + row);
  });
  const std::vector<double> abx = multiplied(rows_, bx, [&](std::int64_t row, std::int64_t column) {
    return element(kSeedOfA, row * rows_ + column);
  });
  const std::vector<double> cx = multiplied(rows_, x, [&](std::int64_t row, std::int64_t column) {
    return static_cast<double>(c[static_cast<std::size_t>(row * rows_ + column)]);
  });
  return std::ranges::equal(cx, abx);  // false where either is NaN
}

}  // namespace longca::calibrate
