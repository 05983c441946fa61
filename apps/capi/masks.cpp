// Masks of longca.h.

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "answer.h"
#include "handles.h"
#include "longca.h"
#include "mask/generators.h"
#include "mask/mask.h"
#include "problems.h"

namespace longca::capi {
namespace {

void check_tokens(std::int64_t tokens, const char* name = "tokens") {
  if (tokens < 1 || tokens > kMaxTokens) {
    throw_input_error("{} = {}: at least 1, at most {}", name, tokens, kMaxTokens);
  }
}

/// An option that the mask does not have must be left alone.
void refuse_unused(const MaskTraits& traits, const longca_mask_options& o) {
  const auto refuse = [&](bool given, bool used, const char* name) {
    if (given && !used) throw_input_error("the mask {} has no {}", traits.name, name);
  };
  refuse(o.lengths != nullptr || o.document_lengths != nullptr || o.document_count != 0,
         traits.uses_lengths, "lengths");
  refuse(o.window != -1, traits.uses_window, "window");
  refuse(o.block_tokens != 0, traits.uses_block_tokens, "block_tokens");
  refuse(o.block != 0, traits.uses_blocks, "block");
  refuse(o.density != 0, traits.uses_blocks, "density");
  refuse(o.block_causal != 0, traits.uses_blocks, "block_causal");
}

MaskSpec spec_of(const char* name, std::int64_t tokens, const longca_mask_options& o) {
  if (o.window < -1) {
    throw_input_error("window = {}: at least 0, or -1 for the default", o.window);
  }
  check_count(o.heads_q, "heads_q");
  check_count(o.heads_k, "heads_k");
  MaskSpec spec;
  spec.name = name;
  spec.tokens = tokens;
  spec.seed = o.seed;
  if (o.lengths != nullptr) spec.lengths = o.lengths;
  if (o.document_lengths == nullptr && o.document_count != 0) {
    throw_input_error("document_count is {}, and document_lengths NULL", o.document_count);
  }
  if (o.document_lengths != nullptr) {
    if (o.lengths != nullptr) throw_input_error("lengths and document_lengths: one of them");
    if (o.document_count == 0) throw_input_error("document_count is 0: at least one document");
    spec.document_lengths.assign(o.document_lengths, o.document_lengths + o.document_count);
  }
  if (o.window >= 0) spec.window = o.window;
  if (o.block_tokens != 0) spec.block_tokens = o.block_tokens;
  if (o.block != 0) spec.block = o.block;
  if (o.density != 0) spec.density = o.density;
  spec.heads_q = o.heads_q;
  spec.heads_k = o.heads_k;
  spec.block_heads = o.per_query_head != 0 ? "query" : "kv";
  spec.block_causal = o.block_causal != 0;
  return spec;
}

Mask documents(std::span<const std::int64_t> cu_seqlens, bool causal, std::int64_t left,
               std::int64_t right) {
  if (cu_seqlens.size() < 2) {
    throw_input_error("cu_seqlens has {} entries: at least 2", cu_seqlens.size());
  }
  if (cu_seqlens.front() != 0) {
    throw_input_error("cu_seqlens begins with {}, not with 0", cu_seqlens.front());
  }
  if (left < -1 || right < -1) {
    throw_input_error("the window is ({}, {}): at least 0, or -1 for no limit", left, right);
  }
  // Before any difference: that of entries which fall may be no number.
  for (std::size_t i = 1; i < cu_seqlens.size(); ++i) {
    if (cu_seqlens[i] < cu_seqlens[i - 1]) {
      throw_input_error("cu_seqlens falls from {} to {} at entry {}", cu_seqlens[i - 1],
                        cu_seqlens[i], i);
    }
  }
  check_tokens(cu_seqlens.back());
  const auto diagonal = [](std::int64_t window) {
    return window < 0 ? kNoLimit : std::min(window, kNoLimit);
  };
  const std::int64_t lo = -diagonal(left);
  const std::int64_t hi = diagonal(causal ? 0 : right);
  std::vector<MaskSlice> slices;
  slices.reserve(cu_seqlens.size());
  for (std::size_t i = 1; i < cu_seqlens.size(); ++i) {
    const Range document{cu_seqlens[i - 1], cu_seqlens[i]};
    append_band(slices, {document, document, lo, hi});
  }
  return Mask::from_slices(cu_seqlens.back(), cu_seqlens.back(), std::move(slices));
}

MaskSlice to_slice(const longca_slice& slice) {
  if (slice.type < LONGCA_SLICE_FULL || slice.type > LONGCA_SLICE_BI_CAUSAL) {
    throw_input_error("a slice has type {}: 0 to 3", slice.type);
  }
  if (slice.reserved != 0) throw_input_error("a slice has reserved = {}: 0", slice.reserved);
  return {slice.q_begin, slice.q_end, slice.k_begin, slice.k_end,
          static_cast<MaskSliceType>(slice.type)};
}

longca_slice to_c(const MaskSlice& slice) {
  return {slice.q_begin,
          slice.q_end,
          slice.k_begin,
          slice.k_end,
          static_cast<std::int32_t>(slice.type),
          0};
}

Mask slices_mask(std::int64_t tokens_q, std::int64_t tokens_k,
                 std::span<const longca_slice> slices) {
  check_tokens(tokens_q, "tokens_q");
  check_tokens(tokens_k, "tokens_k");
  std::vector<MaskSlice> list;
  list.reserve(slices.size());
  std::ranges::transform(slices, std::back_inserter(list), to_slice);
  return Mask::from_slices(tokens_q, tokens_k, std::move(list));
}

/// Bounds ascend, to at most kMaxTokens: with more of them no memory is read.
void check_bounds(std::size_t count, const char* name) {
  constexpr std::size_t kMost = kMaxTokens + 1;
  if (count > kMost) throw_input_error("{} = {}: at most {}", name, count, kMost);
}

/// Where the rows' lists begin and end: of a row at most `key_blocks`, each of which it keeps once.
void check_offsets(std::span<const std::int64_t> offsets, std::int64_t key_blocks) {
  if (offsets.front() != 0) {
    throw_input_error("offsets begin with {}, not with 0", offsets.front());
  }
  for (std::size_t i = 1; i < offsets.size(); ++i) {
    if (offsets[i] < offsets[i - 1]) {
      throw_input_error("offsets fall from {} to {} at entry {}", offsets[i - 1], offsets[i], i);
    }
    if (offsets[i] - offsets[i - 1] > key_blocks) {
      throw_input_error(
          "offsets rise from {} to {} at entry {}: a query block keeps at most the {} key blocks "
          "that there are",
          offsets[i - 1], offsets[i], i, key_blocks);
    }
  }
}

Mask blocks_mask(const longca_blocks& b) {
  if (b.q_bound_count < 2 || b.k_bound_count < 2) {
    throw_input_error("blocks have {} query and {} key bounds: at least 2 of each", b.q_bound_count,
                      b.k_bound_count);
  }
  check_bounds(b.q_bound_count, "q_bound_count");
  check_bounds(b.k_bound_count, "k_bound_count");
  check_count(b.heads, "heads");
  BlockLists lists;
  lists.q_bounds.assign(&required(b.q_bounds, "q_bounds"), b.q_bounds + b.q_bound_count);
  lists.k_bounds.assign(&required(b.k_bounds, "k_bounds"), b.k_bounds + b.k_bound_count);
  lists.heads = b.heads;
  const auto rows = static_cast<std::size_t>(b.heads) * (b.q_bound_count - 1);
  lists.offsets.assign(&required(b.offsets, "offsets"), b.offsets + rows + 1);
  check_offsets(lists.offsets, static_cast<std::int64_t>(b.k_bound_count) - 1);
  if (lists.offsets.back() > 0) {
    lists.indices.assign(&required(b.indices, "indices"), b.indices + lists.offsets.back());
  }
  const std::int64_t tokens_q = lists.q_bounds.back();
  const std::int64_t tokens_k = lists.k_bounds.back();
  check_tokens(tokens_q, "tokens_q");
  check_tokens(tokens_k, "tokens_k");
  std::vector<MaskSlice> frame;
  append_band(frame, {{0, tokens_q}, {0, tokens_k}, -kNoLimit, b.causal != 0 ? 0 : kNoLimit});
  return Mask::from_blocks(tokens_q, tokens_k, std::move(frame), std::move(lists));
}

}  // namespace
}  // namespace longca::capi

extern "C" {

using namespace longca;
using namespace longca::capi;

longca_status longca_mask_named(const char* name, int64_t tokens,
                                const longca_mask_options* options, longca_mask** mask) {
  return answer([&] {
    constexpr longca_mask_options kDefaults = LONGCA_MASK_OPTIONS_INIT;
    const auto given =
        options == nullptr ? kDefaults : known_part(*options, kDefaults, "longca_mask_options");
    give(mask, "mask", [&] {
      check_tokens(tokens);
      refuse_unused(mask_traits(&required(name, "name")), given);
      GeneratedMask generated = generate_mask(spec_of(name, tokens, given));
      return make_mask(std::move(generated.mask), std::move(generated.lengths));
    });
  });
}

longca_status longca_mask_from_cu_seqlens(const int64_t* cu_seqlens, size_t count, int32_t causal,
                                          int64_t window_left, int64_t window_right,
                                          longca_mask** mask) {
  return answer([&] {
    give(mask, "mask", [&] {
      auto made = make_mask(documents({&required(cu_seqlens, "cu_seqlens"), count}, causal != 0,
                                      window_left, window_right));
      for (size_t i = 1; i < count; ++i) {
        made->documents.push_back(cu_seqlens[i] - cu_seqlens[i - 1]);
      }
      return made;
    });
  });
}

longca_status longca_mask_from_slices(int64_t tokens_q, int64_t tokens_k,
                                      const longca_slice* slices, size_t count,
                                      longca_mask** mask) {
  return answer([&] {
    if (count > 0) required(slices, "slices");
    give(mask, "mask", [&] { return make_mask(slices_mask(tokens_q, tokens_k, {slices, count})); });
  });
}

longca_status longca_mask_from_blocks(const longca_blocks* blocks, longca_mask** mask) {
  return answer([&] {
    const auto given = known_part(required(blocks, "blocks"), {}, "longca_blocks");
    give(mask, "mask", [&] { return make_mask(blocks_mask(given)); });
  });
}

int64_t longca_mask_tokens_q(const longca_mask* mask) {
  return mask == nullptr ? 0 : mask->mask.q_tokens();
}
int64_t longca_mask_tokens_k(const longca_mask* mask) {
  return mask == nullptr ? 0 : mask->mask.k_tokens();
}
int32_t longca_mask_heads(const longca_mask* mask) {
  return mask == nullptr ? 0 : mask->mask.heads();
}
double longca_mask_area(const longca_mask* mask) {
  return mask == nullptr ? 0 : mask->mask.mean_area();
}

size_t longca_mask_slices(const longca_mask* mask, longca_slice* slices, size_t capacity) {
  if (mask == nullptr) return 0;
  const auto all = mask->mask.slices();
  if (slices != nullptr) {
    std::ranges::transform(all.first(std::min(capacity, all.size())), slices, to_c);
  }
  return all.size();
}

size_t longca_mask_documents(const longca_mask* mask, int64_t* lengths, size_t capacity) {
  if (mask == nullptr) return 0;
  const auto& all = mask->documents;
  if (lengths != nullptr) std::copy_n(all.begin(), std::min(capacity, all.size()), lengths);
  return all.size();
}

longca_status longca_mask_dense(const longca_mask* mask, int32_t head, uint8_t* cells) {
  return answer([&] {
    const Mask& m = required(mask, "mask").mask;
    if (head < 0 || head >= m.heads()) {
      throw_input_error("head = {}: at least 0, at most {}", head, m.heads() - 1);
    }
    std::ranges::copy(m.dense(head), &required(cells, "cells"));
  });
}

void longca_mask_release(longca_mask* mask) {
  delete mask;
}

}  // extern "C"
