#include "attention/adapters/cublas/row_mask.h"

#include <gtest/gtest.h>

#include <random>

#include "attention/cpu/random_problem.h"

namespace longca::test {
namespace {

/// Reads a RowMask as the kernel does.
bool allows(const RowMask& rows, std::int64_t head, std::int64_t q, std::int64_t k) {
  const auto band = static_cast<std::size_t>(rows.band_of_row[static_cast<std::size_t>(q)]);
  bool inside = false;
  for (auto i = rows.band_offsets[band]; i < rows.band_offsets[band + 1]; ++i) {
    const RowMask::MaskSlice& slice = rows.slices[static_cast<std::size_t>(i)];
    const std::int64_t from = slice.k_begin + (slice.lower != 0 ? q - slice.q_begin : 0);
    const std::int64_t to = slice.k_end - (slice.upper != 0 ? slice.q_end - 1 - q : 0);
    EXPECT_TRUE(slice.q_begin <= q && q < slice.q_end);
    inside = inside || (from <= k && k < to);
  }
  if (!inside || rows.kept.empty()) return inside;
  const std::int64_t list = head * rows.q_blocks + rows.block_of_row[static_cast<std::size_t>(q)];
  const std::int32_t block = rows.block_of_key[static_cast<std::size_t>(k)];
  return rows.kept[static_cast<std::size_t>(list * rows.words + block / 32)] >> (block % 32) & 1;
}

TEST(RowMask, AllowsWhatTheMaskAllows) {
  std::mt19937 random(5);
  for (int draw = 0; draw < 40; ++draw) {
    const Problem p = random_problem(DType::bfloat16, random);
    const Mask mask = random_mask(p.tokens_q, p.tokens_k, p.heads_q, p.heads_k, random);
    const RowMask rows = row_mask(mask);
    for (int head = 0; head < mask.heads(); ++head) {
      const std::vector<std::uint8_t> dense = mask.dense(head);
      for (std::int64_t q = 0; q < p.tokens_q; ++q) {
        for (std::int64_t k = 0; k < p.tokens_k; ++k) {
          ASSERT_EQ(allows(rows, head, q, k),
                    dense[static_cast<std::size_t>(q * p.tokens_k + k)] != 0)
              << "draw " << draw << ", head " << head << ", query " << q << ", key " << k;
        }
      }
    }
  }
}

TEST(RowMask, ASliceStandsInEveryBandThatItCrosses) {
  const Mask mask = Mask::from_slices(
      8, 8, {{0, 8, 0, 2, MaskSliceType::full}, {2, 4, 2, 4, MaskSliceType::causal}});
  const RowMask rows = row_mask(mask);
  EXPECT_EQ(rows.band_of_row, (std::vector<std::int32_t>{0, 0, 1, 1, 2, 2, 2, 2}));
  EXPECT_EQ(rows.band_offsets, (std::vector<std::int32_t>{0, 1, 3, 4}));
  EXPECT_TRUE(rows.kept.empty());
}

}  // namespace
}  // namespace longca::test
