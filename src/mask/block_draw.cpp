#include "mask/block_draw.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/philox.h"
#include "mask/smallest.h"

namespace longca {
namespace {

/// Most kept blocks of a mask, over all heads: 8 GiB of lists.
constexpr double kMaxKept = 2147483648.0;

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
  std::vector<std::uint32_t> numbers(static_cast<std::size_t>(k_blocks));
  std::vector<std::int32_t> places(numbers.size());
  lists.indices.reserve(static_cast<std::size_t>(rows * kept));
  for (int head = 0; head < heads; ++head) {
    for (std::int64_t i = 0; i < lists.q_blocks(); ++i) {
      philox_fill(static_cast<std::uint32_t>(head), static_cast<std::uint32_t>(i), philox_key(seed),
                  numbers);
      places_of_smallest(numbers, kept, places);
      lists.indices.insert(lists.indices.end(), places.begin(), places.begin() + kept);
    }
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
