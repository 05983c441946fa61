#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <longca.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "capi/handle.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;

constexpr std::array<const char*, 14> kNames = {
    "full",
    "causal",
    "sliding_window",
    "sliding_window_causal",
    "document",
    "causal_document",
    "shared_question",
    "global_sliding_window",
    "causal_blockwise",
    "prefix_lm_causal",
    "prefix_lm_document",
    "block_causal_document",
    "block_sparse",
    "block_sparse_variable",
};

MaskHandle named(const char* name, std::int64_t tokens,
                 const longca_mask_options* options = nullptr) {
  longca_mask* mask = nullptr;
  longca_mask_named(name, tokens, options, &mask);
  return own(mask);
}

std::vector<std::uint8_t> dense_cells(const longca_mask* mask) {
  std::vector<std::uint8_t> cells(
      static_cast<std::size_t>(longca_mask_tokens_q(mask) * longca_mask_tokens_k(mask)));
  EXPECT_EQ(longca_mask_dense(mask, 0, cells.data()), LONGCA_OK) << longca_last_error();
  return cells;
}

std::vector<unsigned char> bytes_of(const longca_mask* mask) {
  std::size_t size = 0;
  EXPECT_EQ(longca_mask_write(mask, nullptr, 0, &size), LONGCA_OK);
  std::vector<unsigned char> bytes(size);
  EXPECT_EQ(longca_mask_write(mask, bytes.data(), size, &size), LONGCA_OK);
  return bytes;
}

TEST(CapiMask, AllFourteenNamesMakeAMaskWhoseBytesComeBack) {
  for (const char* name : kNames) {
    const MaskHandle mask = named(name, 777);
    ASSERT_NE(mask, nullptr) << name << ": " << longca_last_error();
    EXPECT_EQ(longca_mask_tokens_q(mask.get()), 777);
    const auto bytes = bytes_of(mask.get());
    longca_mask* read = nullptr;
    ASSERT_EQ(longca_mask_read(bytes.data(), bytes.size(), &read), LONGCA_OK)
        << name << ": " << longca_last_error();
    const MaskHandle again = own(read);
    EXPECT_EQ(bytes_of(again.get()), bytes) << name;
    EXPECT_EQ(dense_cells(again.get()), dense_cells(mask.get())) << name;
  }
}

TEST(CapiMask, TornBytesAreRefused) {
  const auto bytes = bytes_of(named("block_sparse", 300).get());
  for (std::size_t size = 0; size < bytes.size(); size += 8) {
    longca_mask* mask = nullptr;
    // A mask without its block lists is one, too: that of its slices.
    if (longca_mask_read(bytes.data(), size, &mask) == LONGCA_OK) {
      EXPECT_LT(bytes_of(own(mask).get()).size(), bytes.size());
    } else {
      EXPECT_STRNE(longca_last_error(), "");
    }
  }
  longca_mask* mask = nullptr;
  EXPECT_EQ(longca_mask_read(bytes.data(), bytes.size() - 3, &mask), LONGCA_INVALID_ARGUMENT);
}

TEST(CapiMask, PackedDocumentsSeeTheirOwnEarlierTokensWithinTheWindow) {
  const std::vector<std::int64_t> cu = {0, 3, 3, 8};
  longca_mask* made = nullptr;
  ASSERT_EQ(longca_mask_from_cu_seqlens(cu.data(), cu.size(), 1, 2, -1, &made), LONGCA_OK);
  const MaskHandle mask = own(made);
  const auto cells = dense_cells(mask.get());
  for (std::int64_t q = 0; q < 8; ++q) {
    for (std::int64_t k = 0; k < 8; ++k) {
      const bool expected = (q < 3) == (k < 3) && k <= q && q - k <= 2;
      EXPECT_EQ(cells[static_cast<std::size_t>(q * 8 + k)], expected) << q << ", " << k;
    }
  }
}

TEST(CapiMask, AWindowLargerThanTheSequenceIsNoLimit) {
  const std::vector<std::int64_t> cu = {0, 3, 8};
  const auto bytes = [&](std::int32_t causal, std::int64_t left, std::int64_t right) {
    longca_mask* mask = nullptr;
    EXPECT_EQ(longca_mask_from_cu_seqlens(cu.data(), cu.size(), causal, left, right, &mask),
              LONGCA_OK);
    return bytes_of(own(mask).get());
  };
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t large : {std::int64_t{8}, std::int64_t{1} << 50, kMax - 7, kMax}) {
    EXPECT_EQ(bytes(1, large, -1), bytes(1, -1, -1)) << large;
    EXPECT_EQ(bytes(0, large, -1), bytes(0, -1, -1)) << large;
    EXPECT_EQ(bytes(0, large, 0), bytes(0, -1, 0)) << large;
    EXPECT_EQ(bytes(0, 1, large), bytes(0, 1, -1)) << large;
    EXPECT_EQ(bytes(0, large, large), bytes(0, -1, -1)) << large;
  }
}

TEST(CapiMask, BytesWhoseNumbersDoNotFitAreRefused) {
  const auto refused = [](const longca_mask* mask, auto change) -> std::string {
    const auto bytes = bytes_of(mask);
    std::vector<std::int64_t> words(bytes.size() / 8);
    std::memcpy(words.data(), bytes.data(), bytes.size());
    change(words);
    longca_mask* read = nullptr;
    EXPECT_EQ(longca_mask_read(words.data(), bytes.size(), &read), LONGCA_INVALID_ARGUMENT);
    EXPECT_EQ(read, nullptr);
    return longca_last_error();
  };
  using Words = std::vector<std::int64_t>;
  const MaskHandle documents = packed_documents({0, 3, 8});  // their lengths are the last words
  EXPECT_EQ(refused(documents.get(), [](Words& w) { w.back() = 4; }),
            "the documents of a mask's bytes have 7 tokens, the mask has 8");
  EXPECT_THAT(refused(documents.get(), [](Words& w) { w.back() = 6; }), HasSubstr("has 6 tokens"));
  EXPECT_THAT(refused(documents.get(), [](Words& w) { *(w.end() - 2) = -1; }),
              HasSubstr("has -1 tokens"));
  // One head and a single block: heads, 2 bounds, 2 bounds, 2 offsets and 1 index, and the counts.
  longca_mask_options options = LONGCA_MASK_OPTIONS_INIT;
  options.density = 1;
  const MaskHandle blocks = named("block_sparse", 100, &options);
  constexpr std::int64_t kWrapped = (std::int64_t{1} << 32) + 1;
  EXPECT_EQ(refused(blocks.get(), [](Words& w) { *(w.end() - 12) = kWrapped; }),
            "heads = 4294967297: at least 1, at most 1048576");
  EXPECT_THAT(refused(blocks.get(), [](Words& w) { w.back() = kWrapped - 1; }),
              HasSubstr("holds 4294967296"));
}

TEST(CapiMask, NoHandleHasNothing) {
  EXPECT_EQ(longca_mask_tokens_q(nullptr), 0);
  EXPECT_EQ(longca_mask_tokens_k(nullptr), 0);
  EXPECT_EQ(longca_mask_heads(nullptr), 0);
  EXPECT_EQ(longca_mask_area(nullptr), 0);
  EXPECT_EQ(longca_mask_slices(nullptr, nullptr, 0), 0);
  EXPECT_EQ(longca_mask_documents(nullptr, nullptr, 0), 0);
}

/// Leaks are the sanitizer's to find.
TEST(CapiMask, WithoutAPlaceForItNoneIsMade) {
  const auto refused = [](longca_status status) {
    EXPECT_EQ(status, LONGCA_INVALID_ARGUMENT);
    EXPECT_STREQ(longca_last_error(), "mask is NULL");
  };
  const std::vector<std::int64_t> cu = {0, 8};
  const std::vector<std::int64_t> offsets = {0, 1};
  const std::vector<std::int32_t> indices = {0};
  const longca_slice slice{0, 8, 0, 8, LONGCA_SLICE_FULL, 0};
  const longca_blocks blocks{sizeof(longca_blocks), cu.data(),     2, cu.data(), 2, 1, 0,
                             offsets.data(),        indices.data()};
  const auto bytes = bytes_of(packed_documents(cu).get());
  refused(longca_mask_named("causal", 8, nullptr, nullptr));
  refused(longca_mask_from_cu_seqlens(cu.data(), 2, 1, -1, -1, nullptr));
  refused(longca_mask_from_slices(8, 8, &slice, 1, nullptr));
  refused(longca_mask_from_blocks(&blocks, nullptr));
  refused(longca_mask_read(bytes.data(), bytes.size(), nullptr));
}

TEST(CapiMask, DocumentsOfTheCallersOwn) {
  const std::vector<std::int64_t> lengths = {5, 60, 35};
  longca_mask_options options = LONGCA_MASK_OPTIONS_INIT;
  options.document_lengths = lengths.data();
  options.document_count = lengths.size();
  const MaskHandle mask = named("causal_document", 100, &options);
  ASSERT_NE(mask, nullptr) << longca_last_error();
  EXPECT_EQ(dense_cells(mask.get()), dense_cells(packed_documents({0, 5, 65, 100}).get()));
  EXPECT_EQ(named("causal_document", 101, &options), nullptr);
  EXPECT_THAT(longca_last_error(), HasSubstr("3 documents have 100 tokens"));
}

TEST(CapiMask, WhatIsWrongIsNamed) {
  const auto expect = [](longca_status status, const std::string& sentence) {
    EXPECT_EQ(status, LONGCA_INVALID_ARGUMENT);
    EXPECT_THAT(longca_last_error(), HasSubstr(sentence));
  };
  longca_mask* mask = nullptr;
  expect(longca_mask_named("casual", 8, nullptr, &mask), "unknown mask 'casual'");
  expect(longca_mask_named("causal", 0, nullptr, &mask), "tokens = 0");
  expect(longca_mask_named(nullptr, 8, nullptr, &mask), "name is NULL");
  expect(longca_mask_named("causal", 8, nullptr, nullptr), "mask is NULL");
  longca_mask_options options = LONGCA_MASK_OPTIONS_INIT;
  options.window = 4;
  expect(longca_mask_named("causal", 8, &options, &mask), "the mask causal has no window");
  options.window = -7;
  expect(longca_mask_named("sliding_window", 8, &options, &mask),
         "window = -7: at least 0, or -1 for the default");
  options.struct_size += 8;
  expect(longca_mask_named("sliding_window", 8, &options, &mask), "older than longca.h");
  options.struct_size = offsetof(longca_mask_options, density) + 4;
  expect(longca_mask_named("sliding_window", 8, &options, &mask),
         "struct_size of longca_mask_options is 68: sizeof(longca_mask_options) is meant");
  options = LONGCA_MASK_OPTIONS_INIT;
  options.heads_q = options.heads_k = std::numeric_limits<std::int32_t>::max();
  expect(longca_mask_named("block_sparse", 8, &options, &mask),
         "heads_q = 2147483647: at least 1, at most 1048576");
  longca_blocks blocks{};
  blocks.struct_size = sizeof blocks;
  blocks.q_bound_count = blocks.k_bound_count = 2;
  blocks.heads = (1 << 20) + 1;
  expect(longca_mask_from_blocks(&blocks, &mask), "heads = 1048577");
  // By counts alone, before any memory is read.
  blocks.heads = 1;
  blocks.k_bound_count = static_cast<std::size_t>(-1);
  expect(longca_mask_from_blocks(&blocks, &mask), "k_bound_count = 18446744073709551615");
  const std::vector<std::int64_t> bounds = {0, 4, 8};
  std::vector<std::int64_t> offsets = {0, 2, 1};
  blocks.q_bounds = blocks.k_bounds = bounds.data();
  blocks.q_bound_count = blocks.k_bound_count = 3;
  blocks.offsets = offsets.data();
  expect(longca_mask_from_blocks(&blocks, &mask), "offsets fall from 2 to 1 at entry 2");
  offsets = {0, 1, std::int64_t{1} << 62};
  expect(longca_mask_from_blocks(&blocks, &mask), "at most the 2 key blocks");
  offsets = {1, 1, 1};
  expect(longca_mask_from_blocks(&blocks, &mask), "offsets begin with 1");
  options = LONGCA_MASK_OPTIONS_INIT;
  options.document_count = 2;
  expect(longca_mask_named("full", 8, &options, &mask), "the mask full has no lengths");
  expect(longca_mask_named("document", 8, &options, &mask),
         "document_count is 2, and document_lengths NULL");
  options.document_lengths = bounds.data() + 1;
  options.lengths = "pile";
  expect(longca_mask_named("document", 12, &options, &mask), "lengths and document_lengths");
  const std::vector<std::int64_t> falling = {0, 8, 5};
  expect(longca_mask_from_cu_seqlens(falling.data(), 3, 1, -1, -1, &mask),
         "falls from 8 to 5 at entry 2");
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int64_t> far = {0, kMax, 5};
  expect(longca_mask_from_cu_seqlens(far.data(), 3, 1, -1, -1, &mask),
         "falls from 9223372036854775807 to 5 at entry 2");
  const std::vector<std::int64_t> deep = {0, -kMax - 1, kMax, 5};
  expect(longca_mask_from_cu_seqlens(deep.data(), 4, 0, 3, 3, &mask),
         "falls from 0 to -9223372036854775808 at entry 1");
  const std::vector<std::int64_t> late = {2, 8};
  expect(longca_mask_from_cu_seqlens(late.data(), 2, 1, -1, -1, &mask), "begins with 2");
  const longca_slice reserved{0, 8, 0, 8, LONGCA_SLICE_FULL, 9};
  EXPECT_EQ(longca_mask_from_slices(8, 8, &reserved, 1, &mask), LONGCA_INVALID_ARGUMENT);
  EXPECT_STREQ(longca_last_error(), "a slice has reserved = 9: 0");
  const std::array<longca_slice, 2> twice = {{{0, 4, 0, 4, 0, 0}, {2, 6, 2, 6, 0, 0}}};
  EXPECT_EQ(longca_mask_from_slices(8, 8, twice.data(), 2, &mask), LONGCA_INVALID_ARGUMENT);
  EXPECT_EQ(mask, nullptr);
}

TEST(CapiMask, AnOlderHeaderGetsTheDefaultsOfWhatItDoesNotKnow) {
  longca_mask_options options = LONGCA_MASK_OPTIONS_INIT;
  options.struct_size = offsetof(longca_mask_options, density);
  std::memset(&options.density, 0xff, sizeof(options) - options.struct_size);
  const MaskHandle mask = named("block_sparse", 512, &options);
  ASSERT_NE(mask, nullptr) << longca_last_error();
  EXPECT_EQ(bytes_of(mask.get()), bytes_of(named("block_sparse", 512).get()));
}

}  // namespace
}  // namespace longca::testing
