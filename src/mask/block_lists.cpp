#include "mask/block_lists.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/error.h"
#include "core/rounding.h"
#include "core/thread_pool.h"

namespace longca {
namespace {

void check_bounds(const char* what, const std::vector<std::int64_t>& bounds, std::int64_t tokens) {
  if (bounds.empty() || bounds.front() != 0 || bounds.back() != tokens) {
    throw_input_error("{} block bounds go from {} to {}: they must go from 0 to {} tokens", what,
                      bounds.empty() ? 0 : bounds.front(), bounds.empty() ? 0 : bounds.back(),
                      tokens);
  }
  for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
    if (bounds[i] >= bounds[i + 1]) {
      throw_input_error("{} block {} goes from {} to {}: bounds must ascend", what, i, bounds[i],
                        bounds[i + 1]);
    }
  }
}

void check_list(const BlockLists& blocks, int head, std::int64_t q_block) {
  std::int64_t previous = -1;
  for (const std::int32_t kept : blocks.kept(head, q_block)) {
    if (kept < 0 || kept >= blocks.k_blocks()) {
      throw_input_error("head {}, query block {} keeps key block {}: they are from 0 to {}", head,
                        q_block, kept, blocks.k_blocks() - 1);
    }
    if (kept <= previous) {
      throw_input_error("head {}, query block {} keeps key block {} after {}: they must ascend",
                        head, q_block, kept, previous);
    }
    previous = kept;
  }
}

/// Lists per task of the thread pool.
constexpr std::int64_t kRowsPerTask = 256;

template <typename Body>
void for_each_list(std::int64_t rows, const Body& body) {
  ThreadPool::global().parallel_for(ceil_div(rows, kRowsPerTask), [&](std::int64_t task, int) {
    const std::int64_t end = std::min((task + 1) * kRowsPerTask, rows);
    for (std::int64_t row = task * kRowsPerTask; row < end; ++row) body(row);
  });
}

}  // namespace

std::span<const std::int32_t> BlockLists::kept(int head, std::int64_t q_block) const {
  const auto list = static_cast<std::size_t>(head * q_blocks() + q_block);
  return std::span(indices).subspan(static_cast<std::size_t>(offsets[list]),
                                    static_cast<std::size_t>(offsets[list + 1] - offsets[list]));
}

void check_block_lists(const BlockLists& blocks, std::int64_t q_tokens, std::int64_t k_tokens) {
  check_bounds("query", blocks.q_bounds, q_tokens);
  check_bounds("key", blocks.k_bounds, k_tokens);
  if (blocks.heads < 1) throw_input_error("block lists of {} heads: at least 1", blocks.heads);
  const auto lists = static_cast<std::size_t>(blocks.heads * blocks.q_blocks());
  const auto& offsets = blocks.offsets;
  if (offsets.size() != lists + 1 || offsets.front() != 0 ||
      offsets.back() != static_cast<std::int64_t>(blocks.indices.size()) ||
      !std::is_sorted(offsets.begin(), offsets.end())) {
    throw_input_error(
        "block list offsets must be {} ascending numbers from 0 to the {} kept blocks", lists + 1,
        blocks.indices.size());
  }
  for_each_list(static_cast<std::int64_t>(lists), [&](std::int64_t row) {
    check_list(blocks, static_cast<int>(row / blocks.q_blocks()), row % blocks.q_blocks());
  });
}

std::int64_t block_of(const std::vector<std::int64_t>& bounds, std::int64_t token) {
  return std::upper_bound(bounds.begin(), bounds.end(), token) - bounds.begin() - 1;
}

std::vector<std::uint32_t> block_bits(const BlockLists& lists) {
  const std::int64_t rows = lists.heads * lists.q_blocks();
  const std::int64_t row_words = words_per_row(lists.k_blocks());
  std::vector<std::uint32_t> words(static_cast<std::size_t>(rows * row_words), 0);
  for_each_list(rows, [&](std::int64_t row) {
    std::uint32_t* out = words.data() + row * row_words;
    const auto at = static_cast<std::size_t>(row);
    for (std::int64_t i = lists.offsets[at]; i < lists.offsets[at + 1]; ++i) {
      const auto block = static_cast<std::uint32_t>(lists.indices[static_cast<std::size_t>(i)]);
      out[block / kBlocksPerWord] |= std::uint32_t{1} << (block % kBlocksPerWord);
    }
  });
  return words;
}

BlockLists lists_of_bits(std::vector<std::int64_t> q_bounds, std::vector<std::int64_t> k_bounds,
                         int heads, std::span<const std::uint32_t> words) {
  BlockLists lists{std::move(q_bounds), std::move(k_bounds), heads, {}, {}};
  const std::int64_t rows = lists.heads * lists.q_blocks();
  const std::int64_t row_words = words_per_row(lists.k_blocks());
  LONGCA_CHECK(std::ssize(words) == rows * row_words, "{} words for {} rows of {}", words.size(),
               rows, row_words);
  const auto row_of = [&](std::int64_t row) {
    return words.subspan(static_cast<std::size_t>(row * row_words),
                         static_cast<std::size_t>(row_words));
  };
  lists.offsets.resize(static_cast<std::size_t>(rows) + 1, 0);
  for_each_list(rows, [&](std::int64_t row) {
    const auto bits = row_of(row);
    std::int64_t count = 0;
    for (const std::uint32_t word : bits) count += std::popcount(word);
    lists.offsets[static_cast<std::size_t>(row) + 1] = count;
    if (const auto used = static_cast<int>(lists.k_blocks() % kBlocksPerWord); used != 0) {
      LONGCA_CHECK((bits.back() >> used) == 0, "row {} has a bit past key block {}", row,
                   lists.k_blocks());
    }
  });
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    lists.offsets[row + 1] += lists.offsets[row];
  }
  lists.indices.resize(static_cast<std::size_t>(lists.offsets.back()));
  for_each_list(rows, [&](std::int64_t row) {
    auto* out = lists.indices.data() + lists.offsets[static_cast<std::size_t>(row)];
    std::int32_t first = 0;
    for (std::uint32_t word : row_of(row)) {
      for (; word != 0; word &= word - 1) *out++ = first + std::countr_zero(word);
      first += kBlocksPerWord;
    }
  });
  return lists;
}

}  // namespace longca
