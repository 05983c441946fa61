// The k smallest of a row of random numbers, compiled once for every instruction set that Highway
// knows; the best is chosen at run time.
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

/// Branch-free: every place is written, and overwritten unless it counts.
HWY_ATTR void places_below(std::span<const std::uint32_t> numbers, std::uint32_t limit,
                           std::int32_t* places) {
  std::size_t written = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    places[written] = static_cast<std::int32_t>(i);
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
HWY_EXPORT(places_below);

/// The largest limit with at most `kept` numbers below it, and how many are.
struct Limit {
  std::uint32_t number = 0;
  std::int64_t below = 0;
};

/// Uniform numbers lie close to a straight line: interpolating between two counts finds a limit
/// with exactly `kept` numbers below it in a handful of passes. Every other step halves the
/// bracket, so that numbers of any distribution take at most 64.
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

/// Adds the first numbers equal to the limit to the places of those below it.
void add_ties(std::span<const std::uint32_t> numbers, Limit limit, std::int64_t kept,
              std::span<std::int32_t> places) {
  auto written = limit.below;
  for (std::size_t i = 0; written < kept; ++i) {
    if (numbers[i] != limit.number) continue;
    places[static_cast<std::size_t>(written++)] = static_cast<std::int32_t>(i);
  }
  std::sort(places.begin(), places.begin() + kept);
}

}  // namespace

void places_of_smallest(std::span<const std::uint32_t> numbers, std::int64_t kept,
                        std::span<std::int32_t> places) {
  if (kept == static_cast<std::int64_t>(numbers.size())) {
    for (std::size_t i = 0; i < numbers.size(); ++i) places[i] = static_cast<std::int32_t>(i);
    return;
  }
  const Limit limit = find_limit(numbers, kept);
  HWY_DYNAMIC_DISPATCH(places_below)(numbers, limit.number, places.data());
  if (limit.below < kept) add_ties(numbers, limit, kept, places);
}

}  // namespace longca
#endif
