#include "mask/oracle.h"

#include <rapidcheck.h>

#include <cstdlib>

namespace longca::oracle {
namespace {

// Unless the environment asks for something else; RapidCheck reads the variable at the first
// property.
[[maybe_unused]] const int kMoreCases = setenv("RC_PARAMS", "max_success=4000", /*overwrite=*/0);

std::vector<Range> intervals(std::int64_t count, const std::function<bool(std::int64_t)>& allowed) {
  std::vector<Range> found;
  for (std::int64_t i = 0; i < count; ++i) {
    if (!allowed(i)) continue;
    if (!found.empty() && found.back().end == i) {
      ++found.back().end;
    } else {
      found.push_back({i, i + 1});
    }
  }
  return found;
}

std::int64_t integer(std::int64_t low, std::int64_t high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::int64_t>(low, high + 1));
}

MaskSlice random_slice(std::int64_t q_tokens, std::int64_t k_tokens) {
  const Range q = random_range(q_tokens);
  const Range k = random_range(k_tokens);
  return {q.begin, q.end, k.begin, k.end, static_cast<MaskSliceType>(integer(0, 3))};
}

std::vector<std::int64_t> random_bounds(std::int64_t tokens) {
  std::vector<std::int64_t> bounds = {0};
  const std::int64_t longest = integer(1, 12);
  while (bounds.back() < tokens) {
    bounds.push_back(std::min(bounds.back() + integer(1, longest), tokens));
  }
  return bounds;
}

std::int64_t block_holding(const std::vector<std::int64_t>& bounds, std::int64_t token) {
  std::int64_t block = 0;
  while (bounds[static_cast<std::size_t>(block) + 1] <= token) ++block;
  return block;
}

}  // namespace

Dense::Dense(std::int64_t queries, std::int64_t keys,
             const std::function<bool(std::int64_t q, std::int64_t k)>& allowed)
    : Dense(queries, keys) {
  for (std::int64_t q = 0; q < queries; ++q) {
    for (std::int64_t k = 0; k < keys; ++k) at(q, k) = allowed(q, k) ? 1 : 0;
  }
}

std::int64_t Dense::area_in(Range queries, Range keys) const {
  std::int64_t area = 0;
  for (std::int64_t q = std::max<std::int64_t>(queries.begin, 0);
       q < std::min(queries.end, q_tokens); ++q) {
    for (std::int64_t k = std::max<std::int64_t>(keys.begin, 0); k < std::min(keys.end, k_tokens);
         ++k) {
      area += at(q, k);
    }
  }
  return area;
}

TileClass Dense::tile_class(Range queries, Range keys) const {
  const std::int64_t area = area_in(queries, keys);
  const Dense ones(q_tokens, k_tokens, [](auto, auto) { return true; });
  if (area == 0) return TileClass::empty;
  return area == ones.area_in(queries, keys) ? TileClass::full : TileClass::partial;
}

std::vector<Range> Dense::row_intervals(std::int64_t q) const {
  return intervals(k_tokens, [&](std::int64_t k) { return at(q, k) != 0; });
}

std::vector<Range> Dense::column_intervals(std::int64_t k) const {
  return intervals(q_tokens, [&](std::int64_t q) { return at(q, k) != 0; });
}

bool slice_allows(const MaskSlice& s, std::int64_t q, std::int64_t k) {
  if (q < s.q_begin || q >= s.q_end || k < s.k_begin || k >= s.k_end) return false;
  const bool causal = s.q_end - q <= s.k_end - k;
  const bool inverse_causal = k - s.k_begin >= q - s.q_begin;
  switch (s.type) {
    case MaskSliceType::full:
      return true;
    case MaskSliceType::causal:
      return causal;
    case MaskSliceType::inverse_causal:
      return inverse_causal;
    case MaskSliceType::bi_causal:
      return causal && inverse_causal;
  }
  return false;
}

std::int64_t random_tokens() {
  return *rc::gen::weightedOneOf<std::int64_t>(
      {{3, rc::gen::element<std::int64_t>(0, 1, 2, 3, 5, 7, 13, 23, 31, 37)},
       {5, rc::gen::resize(rc::kNominalSize, rc::gen::inRange<std::int64_t>(1, 41))}});
}

Range random_range(std::int64_t limit) {
  const std::int64_t a = integer(0, limit);
  const std::int64_t b = integer(0, limit);
  return {std::min(a, b), std::max(a, b)};
}

std::vector<Range> random_ranges(std::int64_t limit) {
  std::vector<Range> ranges;
  const std::int64_t longest = integer(1, 12);
  const std::int64_t widest_gap = integer(0, 8);
  for (std::int64_t at = integer(0, widest_gap); at < limit;) {
    const std::int64_t end = std::min(at + integer(0, longest), limit);
    ranges.push_back({at, end});
    at = end + (end == at ? 1 : integer(0, widest_gap));
  }
  return ranges;
}

std::vector<MaskSlice> random_slices(std::int64_t q_tokens, std::int64_t k_tokens, int count) {
  std::vector<MaskSlice> slices;
  for (int i = 0; i < count; ++i) slices.push_back(random_slice(q_tokens, k_tokens));
  return slices;
}

BlockLists random_blocks(std::int64_t q_tokens, std::int64_t k_tokens) {
  BlockLists blocks;
  blocks.q_bounds = random_bounds(q_tokens);
  blocks.k_bounds = random_bounds(k_tokens);
  blocks.heads = static_cast<int>(integer(1, 3));
  blocks.offsets = {0};
  const std::int64_t density = integer(0, 4);
  for (std::int64_t list = 0; list < blocks.heads * blocks.q_blocks(); ++list) {
    for (std::int64_t j = 0; j < blocks.k_blocks(); ++j) {
      if (integer(0, 3) < density) blocks.indices.push_back(static_cast<std::int32_t>(j));
    }
    blocks.offsets.push_back(static_cast<std::int64_t>(blocks.indices.size()));
  }
  return blocks;
}

bool block_allows(const BlockLists& blocks, int head, std::int64_t q, std::int64_t k) {
  for (const std::int32_t kept : blocks.kept(head, block_holding(blocks.q_bounds, q))) {
    if (kept == block_holding(blocks.k_bounds, k)) return true;
  }
  return false;
}

RandomMask random_mask() {
  const std::int64_t q_tokens = random_tokens();
  const std::int64_t k_tokens = integer(0, 1) == 0 ? q_tokens : random_tokens();
  Dense table(q_tokens, k_tokens);
  std::vector<MaskSlice> slices;
  for (const MaskSlice& slice :
       random_slices(q_tokens, k_tokens, static_cast<int>(integer(0, 14)))) {
    const Dense cells(q_tokens, k_tokens,
                      [&](auto q, auto k) { return slice_allows(slice, q, k); });
    const Dense both(q_tokens, k_tokens,
                     [&](auto q, auto k) { return cells.at(q, k) != 0 && table.at(q, k) != 0; });
    if (both.area() != 0) continue;
    slices.push_back(slice);
    for (std::size_t i = 0; i < table.cells.size(); ++i) table.cells[i] |= cells.cells[i];
  }
  if (integer(0, 2) != 0) return {Mask::from_slices(q_tokens, k_tokens, slices), {table}};
  const BlockLists blocks = random_blocks(q_tokens, k_tokens);
  RandomMask random{Mask::from_blocks(q_tokens, k_tokens, slices, blocks), {}};
  for (int head = 0; head < blocks.heads; ++head) {
    random.heads.emplace_back(q_tokens, k_tokens, [&](auto q, auto k) {
      return table.at(q, k) != 0 && block_allows(blocks, head, q, k);
    });
  }
  return random;
}

Dense dense_of(const Mask& mask, int head) {
  Dense dense(mask.q_tokens(), mask.k_tokens());
  dense.cells = mask.dense(head);
  return dense;
}

}  // namespace longca::oracle
