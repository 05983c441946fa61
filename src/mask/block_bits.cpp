#include "mask/block_bits.h"

#include <bit>
#include <utility>

#include "core/error.h"
#include "core/thread_pool.h"

namespace longca {
namespace {

/// Rows of lists that one task works on.
constexpr std::int64_t kRowsPerTask = 256;

template <typename Body>
void for_each_row(std::int64_t rows, const Body& body) {
  ThreadPool::global().parallel_for(
      (rows + kRowsPerTask - 1) / kRowsPerTask, [&](std::int64_t task, int) {
        const std::int64_t end = std::min((task + 1) * kRowsPerTask, rows);
        for (std::int64_t row = task * kRowsPerTask; row < end; ++row) body(row);
      });
}

}  // namespace

std::vector<std::uint32_t> block_bits(const BlockLists& lists) {
  const std::int64_t rows = lists.heads * lists.q_blocks();
  const std::int64_t row_words = words_per_row(lists.k_blocks());
  std::vector<std::uint32_t> words(static_cast<std::size_t>(rows * row_words), 0);
  for_each_row(rows, [&](std::int64_t row) {
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
  for_each_row(rows, [&](std::int64_t row) {
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
  for_each_row(rows, [&](std::int64_t row) {
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
