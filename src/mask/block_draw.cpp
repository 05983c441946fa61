#include "mask/block_draw.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.h"
#include "core/philox.h"
#include "core/rounding.h"
#include "core/thread_pool.h"
#include "mask/smallest.h"

namespace longca {
namespace {

/// Maximum number of kept blocks of a mask over all heads: 8 GiB of lists.
constexpr double kMaxKept = 2147483648.0;

}  // namespace

std::int64_t kept_blocks(double density, std::int64_t k_blocks) {
  const auto rounded =
      static_cast<std::int64_t>(std::nearbyint(density * static_cast<double>(k_blocks)));
  return std::min(std::max<std::int64_t>(1, rounded), k_blocks);
}

std::vector<std::int64_t> BlockChoice::visible() const {
  std::vector<std::int64_t> counts(static_cast<std::size_t>(q_blocks()), k_blocks());
  if (!causal) return counts;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto after = std::lower_bound(k_bounds.begin(), k_bounds.end() - 1, q_bounds[i + 1]);
    counts[i] = after - k_bounds.begin();
  }
  return counts;
}

BlockLists lists_to_fill(const BlockChoice& choice) {
  BlockLists lists{choice.q_bounds, choice.k_bounds, choice.heads, {0}, {}};
  const std::vector<std::int64_t> visible = choice.visible();
  std::vector<std::int64_t> kept(visible.size());
  std::int64_t per_head = 0;
  for (std::size_t i = 0; i < visible.size(); ++i) {
    kept[i] = kept_blocks(choice.density, visible[i]);
    per_head += kept[i];
  }
  const double entries = static_cast<double>(per_head) * choice.heads;
  if (entries > kMaxKept) {
    throw_input_error(
        "{} heads × {} query blocks that keep {} key blocks on average are {:.0f} entries of block "
        "lists: the limit is {:.0f}; use larger blocks or a lower density",
        choice.heads, lists.q_blocks(), per_head / lists.q_blocks(), entries, kMaxKept);
  }
  lists.offsets.reserve(kept.size() * static_cast<std::size_t>(choice.heads) + 1);
  for (int head = 0; head < choice.heads; ++head) {
    for (const std::int64_t count : kept) lists.offsets.push_back(lists.offsets.back() + count);
  }
  lists.indices.resize(static_cast<std::size_t>(lists.offsets.back()));
  return lists;
}

BlockLists draw_blocks(const BlockChoice& choice, std::uint64_t seed) {
  constexpr std::int64_t kRowsPerTask = 64;
  BlockLists lists = lists_to_fill(choice);
  const std::vector<std::int64_t> visible = choice.visible();
  const std::int64_t q_blocks = lists.q_blocks();
  const std::int64_t rows = lists.heads * q_blocks;
  const auto draw_rows = [&](std::int64_t task, int) {
    std::vector<std::uint32_t> numbers(static_cast<std::size_t>(lists.k_blocks()));
    std::vector<std::int32_t> indices(numbers.size());
    for (auto row = task * kRowsPerTask; row < std::min((task + 1) * kRowsPerTask, rows); ++row) {
      const auto i = static_cast<std::uint32_t>(row % q_blocks);
      const std::span seen = std::span(numbers).first(static_cast<std::size_t>(visible[i]));
      philox_fill(static_cast<std::uint32_t>(row / q_blocks), i, philox_key(seed), seen);
      const auto at = static_cast<std::size_t>(row);
      const std::int64_t kept = lists.offsets[at + 1] - lists.offsets[at];
      indices_of_smallest(seen, kept, indices);
      std::copy_n(indices.begin(), kept, lists.indices.begin() + lists.offsets[at]);
    }
  };
  ThreadPool::global().parallel_for(ceil_div(rows, kRowsPerTask), draw_rows);
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
