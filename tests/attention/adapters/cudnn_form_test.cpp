#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "attention/adapters/cudnn/cudnn.h"
#include "attention/adapters/cudnn/form.h"
#include "mask/generators.h"

namespace longca {
namespace {

using testing::HasSubstr;

Mask mask_of(const std::string& name) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = 2048;
  spec.window = 100;
  spec.block_tokens = 256;
  spec.heads_q = 4;
  spec.heads_k = 2;
  return generate_mask(spec).mask;
}

/// What cuDNN makes of a form: the cell (q, k), by its own definition of the bounds.
bool allows(const CudnnForm& form, const Mask& mask, std::int64_t q, std::int64_t k) {
  std::int64_t offset = form.bottom_right ? mask.k_tokens() - mask.q_tokens() : 0;
  if (form.packed()) {
    const auto sequence = [&](std::int64_t token) {
      return std::ranges::upper_bound(form.cu_seqlens, token) - form.cu_seqlens.begin();
    };
    if (sequence(q) != sequence(k)) return false;
  }
  if (form.left_bound && k <= q + offset - *form.left_bound) return false;
  return !form.right_bound || k <= q + offset + *form.right_bound;
}

void expect_same_cells(const Mask& mask) {
  const auto form = cudnn_form(mask);
  ASSERT_TRUE(form);
  const auto dense = mask.dense(0);
  for (std::int64_t q = 0; q < mask.q_tokens(); ++q) {
    for (std::int64_t k = 0; k < mask.k_tokens(); ++k) {
      ASSERT_EQ(allows(*form, mask, q, k),
                dense[static_cast<std::size_t>(q * mask.k_tokens() + k)] != 0)
          << q << ' ' << k;
    }
  }
}

class Expressed : public testing::TestWithParam<const char*> {};
TEST_P(Expressed, HasTheCellsOfTheMask) {
  expect_same_cells(mask_of(GetParam()));
}
INSTANTIATE_TEST_SUITE_P(CudnnForm, Expressed,
                         testing::Values("full", "causal", "sliding_window",
                                         "sliding_window_causal", "document", "causal_document"),
                         [](const auto& instance) { return std::string(instance.param); });

class Refused : public testing::TestWithParam<const char*> {};
TEST_P(Refused, IsUnsupportedWithAReason) {
  Problem problem;
  problem.tokens_q = problem.tokens_k = 2048;
  problem.heads_q = 4;
  problem.heads_k = 2;
  problem.dtype = DType::bfloat16;
  problem.device = DeviceKind::cuda;
  const Support support = cudnn_can_express(problem, mask_of(GetParam()));
  EXPECT_EQ(support.code, StatusCode::unsupported);
  EXPECT_THAT(support.reason,
              testing::AnyOf(HasSubstr("packed sequences"), HasSubstr("block-sparse")));
}
INSTANTIATE_TEST_SUITE_P(CudnnForm, Refused,
                         testing::Values("shared_question", "global_sliding_window",
                                         "causal_blockwise", "prefix_lm_causal",
                                         "prefix_lm_document", "block_causal_document",
                                         "block_sparse", "block_sparse_variable"),
                         [](const auto& instance) { return std::string(instance.param); });

TEST(CudnnForm, AlignsTheDiagonalOfUnequalLengthsToTheBottomRight) {
  const Mask mask = Mask::from_slices(40, 90, {{0, 40, 0, 90, MaskSliceType::causal}});
  EXPECT_TRUE(cudnn_form(mask)->bottom_right);
  expect_same_cells(mask);
  const Mask full = Mask::from_slices(40, 90, {{0, 40, 0, 90, MaskSliceType::full}});
  EXPECT_FALSE(cudnn_form(full)->bottom_right);
}

TEST(CudnnForm, PacksDocumentsByOffsetsInElements) {
  const Mask mask = Mask::from_slices(10, 10,
                                      {{0, 3, 0, 3, MaskSliceType::causal},
                                       {3, 4, 3, 4, MaskSliceType::full},
                                       {4, 10, 4, 10, MaskSliceType::causal}});
  const auto form = cudnn_form(mask);
  ASSERT_TRUE(form);
  EXPECT_EQ(form->batch, 3);
  EXPECT_EQ(form->max_tokens_q, 6);
  EXPECT_EQ(form->right_bound, 0);
  EXPECT_EQ(sequence_lengths(*form), (std::vector<std::int32_t>{3, 1, 6}));
  EXPECT_EQ(ragged_offsets(*form, 256), (std::vector<std::int64_t>{0, 768, 1024, 2560}));
}

TEST(CudnnForm, OffsetsOfLongSequencesPass32Bits) {
  CudnnForm form;
  form.cu_seqlens = {0, std::int64_t{1} << 20};
  EXPECT_EQ(ragged_offsets(form, 64 * 128).back(), std::int64_t{1} << 33);
}

TEST(CudnnCanExpress, RefusesNoTokens) {
  Problem problem;
  problem.dtype = DType::bfloat16;
  problem.tokens_q = 5;
  EXPECT_THAT(cudnn_can_express(problem, Mask::from_slices(5, 0, {})).reason,
              HasSubstr("at least one query and one key"));
}

TEST(CudnnCanExpress, RefusesRowsWithoutKeys) {
  Problem problem;
  problem.dtype = DType::bfloat16;
  problem.tokens_q = 90;
  problem.tokens_k = 40;
  const Mask causal = Mask::from_slices(90, 40, {{0, 90, 0, 40, MaskSliceType::causal}});
  EXPECT_THAT(cudnn_can_express(problem, causal).reason, HasSubstr("40 keys are fewer than 90"));
  const Mask full = Mask::from_slices(90, 40, {{0, 90, 0, 40, MaskSliceType::full}});
  EXPECT_TRUE(cudnn_can_express(problem, full).ok());
}

TEST(CudnnCanExpress, NamesTheHeadDimension) {
  Problem problem;
  problem.tokens_q = problem.tokens_k = 2048;
  problem.dtype = DType::bfloat16;
  problem.head_dim = 100;
  EXPECT_THAT(cudnn_can_express(problem, mask_of("full")).reason, HasSubstr("not 100"));
  problem.head_dim = 96;
  EXPECT_TRUE(cudnn_can_express(problem, mask_of("full")).ok());
  problem.head_dim = 192;
  problem.head_dim_v = 128;
  EXPECT_TRUE(cudnn_can_express(problem, mask_of("full")).ok());
  problem.head_dim_v = 100;
  EXPECT_THAT(cudnn_can_express(problem, mask_of("full")).reason, HasSubstr("not 192:100"));
  problem.head_dim_v = 0;
  problem.dtype = DType::float32;
  EXPECT_THAT(cudnn_can_express(problem, mask_of("full")).reason, HasSubstr("no float32"));
}

}  // namespace
}  // namespace longca
