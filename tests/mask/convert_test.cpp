#include "mask/convert.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "mask/generators.h"
#include "mask/oracle.h"

namespace longca {
namespace {

using oracle::Dense;
using oracle::RandomMask;

/// A small one of the fourteen, now and then with one cell-sized fault, or any random mask.
Mask random_candidate() {
  const int kind = *rc::gen::inRange(0, 3);
  if (kind == 0) return oracle::random_mask().mask;
  MaskSpec spec;
  spec.name = *rc::gen::elementOf(std::vector<std::string>{
      "full", "causal", "sliding_window", "sliding_window_causal", "document", "causal_document",
      "prefix_lm_causal", "block_causal_document", "global_sliding_window", "block_sparse"});
  spec.tokens = oracle::random_tokens();
  spec.lengths = "pile";
  spec.seed = *rc::gen::arbitrary<std::uint64_t>();
  spec.window = *rc::gen::inRange<std::int64_t>(0, 45);
  spec.block_tokens = *rc::gen::inRange<std::int64_t>(1, 9);
  spec.block = *rc::gen::inRange<std::int64_t>(1, 9);
  spec.density = *rc::gen::element(0.3, 1.0);
  spec.heads_q = spec.heads_k = 2;
  const Mask mask = generate_mask(spec).mask;
  if (kind == 1 || mask.blocks() != nullptr) return mask;
  // A part of it: rectangles and shifted diagonals.
  const std::vector<Range> queries = {oracle::random_range(mask.q_tokens())};
  const std::vector<Range> keys = {oracle::random_range(mask.k_tokens())};
  return mask.sub_mask(queries, keys);
}

/// Short documents by hand: those of the histograms rarely end inside 40 tokens.
Mask random_documents() {
  const std::int64_t tokens = oracle::random_tokens();
  const bool mixed = *rc::gen::inRange(0, 4) == 0;
  MaskSliceType type = *rc::gen::element(MaskSliceType::full, MaskSliceType::causal);
  std::vector<MaskSlice> slices;
  for (std::int64_t begin = 0; begin < tokens;) {
    const std::int64_t end = std::min(begin + *rc::gen::inRange<std::int64_t>(1, 12), tokens);
    if (mixed) type = *rc::gen::element(MaskSliceType::full, MaskSliceType::causal);
    slices.push_back({begin, end, begin, end, type});
    begin = end;
  }
  return Mask::from_slices(tokens, tokens, slices);
}

bool blocks_drop_cells(const Mask& mask) {
  std::int64_t area = 0;
  for (const MaskSlice& slice : mask.slices()) area += slice.area();
  for (int head = 0; head < mask.heads(); ++head) {
    if (oracle::dense_of(mask, head).area() != area) return true;
  }
  return false;
}

/// Tokens i and i + 1 share a document exactly if the later one sees the earlier one.
std::optional<DocumentForm> document_form_of(const Dense& dense) {
  if (dense.q_tokens != dense.k_tokens) return std::nullopt;
  std::vector<std::int64_t> document(static_cast<std::size_t>(dense.q_tokens), 0);
  DocumentForm form{{0}, false};
  for (std::int64_t i = 1; i < dense.q_tokens; ++i) {
    const bool begins = dense.at(i, i - 1) == 0;
    if (begins) form.cu_seqlens.push_back(i);
    document[static_cast<std::size_t>(i)] = document[static_cast<std::size_t>(i - 1)] + begins;
  }
  if (dense.q_tokens > 0) form.cu_seqlens.push_back(dense.q_tokens);
  for (const bool causal : {false, true}) {
    form.causal = causal;
    const Dense expected(dense.q_tokens, dense.k_tokens, [&](auto q, auto k) {
      return document[static_cast<std::size_t>(q)] == document[static_cast<std::size_t>(k)] &&
             (!causal || k <= q);
    });
    if (expected == dense) return form;
  }
  return std::nullopt;
}

Dense dense_window(std::int64_t q_tokens, std::int64_t k_tokens, WindowForm window) {
  return Dense(q_tokens, k_tokens, [&](auto q, auto k) {
    const std::int64_t diagonal = q + k_tokens - q_tokens;
    return (window.left < 0 || k >= diagonal - window.left) &&
           (window.right < 0 || k <= diagonal + window.right);
  });
}

bool some_window_fits(const Dense& dense) {
  for (std::int64_t left = -1; left < dense.q_tokens + dense.k_tokens; ++left) {
    for (std::int64_t right = -1; right < dense.q_tokens + dense.k_tokens; ++right) {
      if (dense_window(dense.q_tokens, dense.k_tokens, {left, right}) == dense) return true;
    }
  }
  return false;
}

void check_document_form(const Mask& mask) {
  const auto form = document_form(mask);
  const auto expected =
      blocks_drop_cells(mask) ? std::nullopt : document_form_of(oracle::dense_of(mask, 0));
  RC_ASSERT(form == expected);
}

RC_GTEST_PROP(DocumentForm, AgreesWithTheDenseMatrix, ()) {
  check_document_form(random_candidate());
  check_document_form(random_documents());
}

RC_GTEST_PROP(WindowForm, AgreesWithTheDenseMatrix, ()) {
  const Mask mask = random_candidate();
  const auto form = window_form(mask);
  const Dense dense = oracle::dense_of(mask, 0);
  if (form) {
    RC_ASSERT(!blocks_drop_cells(mask));
    RC_ASSERT(dense_window(mask.q_tokens(), mask.k_tokens(), *form) == dense);
  } else if (mask.q_tokens() * mask.k_tokens() < 150 && !blocks_drop_cells(mask)) {
    RC_ASSERT(!some_window_fits(dense));
  }
}

void check_column_intervals(const Mask& mask) {
  for (int head = 0; head < mask.heads(); ++head) {
    const Dense dense = oracle::dense_of(mask, head);
    const Dense masked(dense.q_tokens, dense.k_tokens,
                       [&](auto q, auto k) { return dense.at(q, k) == 0; });
    std::size_t most = 0;
    for (std::int64_t k = 0; k < mask.k_tokens(); ++k) {
      most = std::max(most, masked.column_intervals(k).size());
    }
    const auto form = column_intervals(mask, head);
    RC_ASSERT(form.has_value() == (most <= 2));
    if (!form) continue;
    RC_ASSERT(form->lt_start.size() == static_cast<std::size_t>(mask.k_tokens()));
    const auto inside = [](std::int64_t q, std::int32_t begin, std::int32_t end) {
      return q >= begin && q < end;
    };
    const Dense told(dense.q_tokens, dense.k_tokens, [&](auto q, auto column) {
      const auto k = static_cast<std::size_t>(column);
      return inside(q, form->lt_start[k], form->lt_end[k]) ||
             inside(q, form->ut_start[k], form->ut_end[k]);
    });
    RC_ASSERT(told == masked);
  }
}

RC_GTEST_PROP(ColumnIntervals, AgreeWithTheDenseMatrix, ()) {
  check_column_intervals(random_candidate());
  check_column_intervals(random_documents());
}

GeneratedMask generated(const std::string& name, std::int64_t tokens) {
  MaskSpec spec;
  spec.name = name;
  spec.tokens = tokens;
  spec.window = 3;
  return generate_mask(spec);
}

TEST(DocumentForm, OfTheMasksThatHaveOne) {
  const GeneratedMask causal = generated("causal_document", 8192);
  const auto form = document_form(causal.mask);
  ASSERT_TRUE(form.has_value());
  EXPECT_TRUE(form->causal);
  ASSERT_EQ(form->cu_seqlens.size(), causal.lengths.size() + 1);
  for (std::size_t i = 0; i < causal.lengths.size(); ++i) {
    EXPECT_EQ(form->cu_seqlens[i + 1] - form->cu_seqlens[i], causal.lengths[i]);
  }
  EXPECT_EQ(document_form(generated("full", 7).mask), (DocumentForm{{0, 7}, false}));
  EXPECT_EQ(document_form(generated("causal", 7).mask), (DocumentForm{{0, 7}, true}));
  EXPECT_EQ(document_form(generated("full", 0).mask), (DocumentForm{{0}, false}));
  EXPECT_EQ(document_form(generated("sliding_window", 7).mask), std::nullopt);
}

// The same cells cut otherwise: recognised from the cells, not from the slices.
TEST(DocumentForm, OfDocumentsInPieces) {
  const Mask mask = Mask::from_slices(6, 6,
                                      {{0, 2, 0, 2, MaskSliceType::causal},
                                       {2, 4, 0, 2, MaskSliceType::full},
                                       {2, 4, 2, 4, MaskSliceType::causal},
                                       {4, 5, 4, 5, MaskSliceType::full},
                                       {5, 6, 4, 6, MaskSliceType::full}});
  EXPECT_EQ(document_form(mask), (DocumentForm{{0, 4, 6}, true}));
}

TEST(WindowForm, OfTheMasksThatHaveOne) {
  EXPECT_EQ(window_form(generated("full", 9).mask), (WindowForm{-1, -1}));
  EXPECT_EQ(window_form(generated("causal", 9).mask), (WindowForm{-1, 0}));
  EXPECT_EQ(window_form(generated("sliding_window", 9).mask), (WindowForm{3, 3}));
  EXPECT_EQ(window_form(generated("sliding_window_causal", 9).mask), (WindowForm{3, 0}));
  EXPECT_EQ(window_form(generated("prefix_lm_causal", 9).mask), std::nullopt);
  EXPECT_EQ(window_form(generated("full", 0).mask), (WindowForm{-1, -1}));
}

TEST(WindowForm, IsAlignedToTheBottomRightCorner) {
  const Mask decode = Mask::from_slices(2, 6, {{0, 2, 0, 6, MaskSliceType::causal}});
  EXPECT_EQ(window_form(decode), (WindowForm{-1, 0}));
  const Mask top_left = Mask::from_slices(2, 6, {{0, 2, 0, 2, MaskSliceType::causal}});
  EXPECT_EQ(window_form(top_left), std::nullopt) << "its limit lies left of the diagonal";
}

TEST(ColumnIntervals, OfACausalDocument) {
  const Mask mask = Mask::from_slices(
      6, 6, {{0, 2, 0, 2, MaskSliceType::causal}, {2, 6, 2, 6, MaskSliceType::causal}});
  const auto form = column_intervals(mask, 0);
  ASSERT_TRUE(form.has_value());
  EXPECT_EQ(form->lt_start, (std::vector<std::int32_t>{2, 2, 6, 6, 6, 6}));
  EXPECT_EQ(form->lt_end, (std::vector<std::int32_t>{6, 6, 6, 6, 6, 6}));
  EXPECT_EQ(form->ut_start, (std::vector<std::int32_t>{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(form->ut_end, (std::vector<std::int32_t>{0, 1, 2, 3, 4, 5}));
}

}  // namespace
}  // namespace longca
