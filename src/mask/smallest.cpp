// Compiled once per SIMD target of Highway and dispatched at run time.
#include "mask/smallest.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mask/smallest.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace longca::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<std::uint32_t>;

HWY_ATTR std::int64_t count_below(std::span<const std::uint32_t> numbers, std::uint32_t limit) {
  const std::size_t lanes = hn::Lanes(D());
  const auto limits = hn::Set(D(), limit);
  std::size_t count = 0;
  std::size_t i = 0;
  for (; i + lanes <= numbers.size(); i += lanes) {
    count += hn::CountTrue(D(), hn::Lt(hn::LoadU(D(), &numbers[i]), limits));
  }
  for (; i < numbers.size(); ++i) count += numbers[i] < limit ? 1 : 0;
  return static_cast<std::int64_t>(count);
}

/// Branch-free compaction: writes every index and advances only past those below the limit.
HWY_ATTR void indices_below(std::span<const std::uint32_t> numbers, std::uint32_t limit,
                            std::int32_t* indices) {
  std::size_t written = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    indices[written] = static_cast<std::int32_t>(i);
    written += numbers[i] < limit ? 1 : 0;
  }
}

}  // namespace
}  // namespace longca::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace longca {
namespace {

HWY_EXPORT(count_below);
HWY_EXPORT(indices_below);

/// The largest number with at most `kept` of the row below it, and that count.
struct Limit {
  std::uint32_t number = 0;
  std::int64_t below = 0;
};

/// Interpolation search over the counts, which takes a handful of passes for uniform numbers. Every
/// fourth pass bisects, which bounds the passes for numbers of any distribution.
Limit find_limit(std::span<const std::uint32_t> numbers, std::int64_t kept) {
  const auto count = HWY_DYNAMIC_DISPATCH(count_below);
  std::uint64_t low = 0;
  std::uint64_t high = std::uint64_t{1} << 32;
  std::int64_t below_low = 0;
  auto below_high = static_cast<std::int64_t>(numbers.size());
  for (int pass = 0; below_low < kept && high - low > 1; ++pass) {
    const double share = (static_cast<double>(kept - below_low) + 0.5) /
                         (static_cast<double>(below_high - below_low) + 1);
    const auto step = pass % 4 == 3
                          ? (high - low) / 2
                          : static_cast<std::uint64_t>(share * static_cast<double>(high - low));
    const std::uint64_t middle = low + std::clamp<std::uint64_t>(step, 1, high - low - 1);
    const std::int64_t below = count(numbers, static_cast<std::uint32_t>(middle));
    if (below <= kept) {
      low = middle;
      below_low = below;
    } else {
      high = middle;
      below_high = below;
    }
  }
  return {static_cast<std::uint32_t>(low), below_low};
}

/// Adds the indices of the first numbers equal to the limit.
void add_ties(std::span<const std::uint32_t> numbers, Limit limit, std::int64_t kept,
              std::span<std::int32_t> indices) {
  auto written = limit.below;
  for (std::size_t i = 0; written < kept; ++i) {
    if (numbers[i] != limit.number) continue;
    indices[static_cast<std::size_t>(written++)] = static_cast<std::int32_t>(i);
  }
  std::sort(indices.begin(), indices.begin() + kept);
}

}  // namespace

void indices_of_smallest(std::span<const std::uint32_t> numbers, std::int64_t kept,
                         std::span<std::int32_t> indices) {
  if (kept == static_cast<std::int64_t>(numbers.size())) {
    for (std::size_t i = 0; i < numbers.size(); ++i) indices[i] = static_cast<std::int32_t>(i);
    return;
  }
  const Limit limit = find_limit(numbers, kept);
  HWY_DYNAMIC_DISPATCH(indices_below)(numbers, limit.number, indices.data());
  if (limit.below < kept) add_ties(numbers, limit, kept, indices);
}

}  // namespace longca
#endif
