#include "mask/block_draw.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/philox.h"

namespace longca {
namespace {

/// Most kept blocks of a mask, over all heads: 8 GiB of lists.
constexpr double kMaxKept = 2147483648.0;

/// A position among the numbers of a row: those below `number` and, of equal ones, the first `ties`
/// are kept.
struct Cut {
  std::uint32_t number = 0;
  std::int64_t ties = 0;
};

std::int64_t count_below(const std::vector<std::uint32_t>& numbers, std::uint64_t limit) {
  if (limit > 0xffffffffU) return static_cast<std::int64_t>(numbers.size());
  const auto bound = static_cast<std::uint32_t>(limit);
  std::uint32_t count = 0;
  for (const std::uint32_t number : numbers) count += number < bound ? 1U : 0U;
  return count;
}

/// The cut that keeps the `kept` smallest. The numbers are uniform, so interpolating between counts
/// narrows the range to a few of them within about three passes.
Cut find_cut(const std::vector<std::uint32_t>& numbers, std::int64_t kept,
             std::vector<std::uint32_t>& scratch) {
  constexpr std::int64_t kFew = 32;
  std::uint64_t low = 0;                        // fewer than `kept` + 1 are below
  std::uint64_t high = std::uint64_t{1} << 32;  // at least `kept` are below
  std::int64_t below_low = 0;
  auto below_high = static_cast<std::int64_t>(numbers.size());
  while (below_high - below_low > kFew && high - low > 1) {
    const double share = (static_cast<double>(kept - below_low) + 0.5) /
                         static_cast<double>(below_high - below_low + 1);
    const auto step = static_cast<std::uint64_t>(share * static_cast<double>(high - low));
    const std::uint64_t middle = low + std::clamp<std::uint64_t>(step, 1, high - low - 1);
    const std::int64_t below = count_below(numbers, middle);
    if (below < kept) {
      low = middle;
      below_low = below;
    } else {
      high = middle;
      below_high = below;
    }
  }
  scratch.clear();
  for (const std::uint32_t number : numbers) {
    if (number >= low && number < high) scratch.push_back(number);
  }
  std::sort(scratch.begin(), scratch.end());
  const std::uint32_t number = scratch[static_cast<std::size_t>(kept - below_low - 1)];
  return {number, kept - count_below(numbers, number)};
}

/// Writes the kept blocks in ascending order.
void write_kept(const std::vector<std::uint32_t>& numbers, Cut cut, std::int64_t kept,
                std::int32_t* out) {
  std::int64_t written = 0;
  for (std::size_t j = 0; written < kept; ++j) {
    const bool tie = numbers[j] == cut.number && cut.ties > 0;
    cut.ties -= tie ? 1 : 0;
    out[written] = static_cast<std::int32_t>(j);
    written += numbers[j] < cut.number || tie ? 1 : 0;
  }
}

}  // namespace

std::int64_t kept_blocks(double density, std::int64_t k_blocks) {
  const auto rounded =
      static_cast<std::int64_t>(std::nearbyint(density * static_cast<double>(k_blocks)));
  return std::min(std::max<std::int64_t>(1, rounded), k_blocks);
}

BlockLists draw_blocks(std::vector<std::int64_t> q_bounds, std::vector<std::int64_t> k_bounds,
                       int heads, double density, std::uint64_t seed) {
  BlockLists lists{std::move(q_bounds), std::move(k_bounds), heads, {}, {}};
  const std::int64_t k_blocks = lists.k_blocks();
  const std::int64_t kept = kept_blocks(density, k_blocks);
  const std::int64_t rows = heads * lists.q_blocks();
  if (static_cast<double>(rows) * static_cast<double>(kept) > kMaxKept) {
    throw_input_error(
        "{} heads × {} query blocks × {} kept key blocks are {:.0f} entries of block lists: the "
        "limit is {:.0f}; use larger blocks or a lower density",
        heads, lists.q_blocks(), kept, static_cast<double>(rows) * static_cast<double>(kept),
        kMaxKept);
  }
  lists.offsets.resize(static_cast<std::size_t>(rows) + 1);
  for (std::size_t i = 0; i < lists.offsets.size(); ++i) {
    lists.offsets[i] = static_cast<std::int64_t>(i) * kept;
  }
  lists.indices.resize(static_cast<std::size_t>(rows * kept));
  std::vector<std::uint32_t> numbers(static_cast<std::size_t>(k_blocks));
  std::vector<std::uint32_t> scratch;
  for (std::int64_t row = 0; row < rows; ++row) {
    philox_fill(static_cast<std::uint32_t>(row / lists.q_blocks()),
                static_cast<std::uint32_t>(row % lists.q_blocks()), philox_key(seed), numbers);
    write_kept(numbers, find_cut(numbers, kept, scratch), kept,
               &lists.indices[static_cast<std::size_t>(row * kept)]);
  }
  return lists;
}

std::vector<std::int64_t> uniform_bounds(std::int64_t tokens, std::int64_t block) {
  std::vector<std::int64_t> bounds = {0};
  while (bounds.back() < tokens) {
    bounds.push_back(bounds.back() + std::min(block, tokens - bounds.back()));
  }
  return bounds;
}

std::vector<std::int64_t> variable_bounds(std::int64_t tokens, std::int64_t block,
                                          PythonRandom& random) {
  std::vector<std::int64_t> bounds = {0};
  while (bounds.back() < tokens) {
    const std::int64_t length = random.randint(block / 2, block + block / 2);
    const std::int64_t rest = tokens - bounds.back();
    bounds.push_back(bounds.back() + std::max<std::int64_t>(1, std::min(length, rest)));
  }
  return bounds;
}

}  // namespace longca
