#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mask/mask.h"

namespace longca::oracle {

/// A mask as a table of cells, filled cell by cell from definitions: what every query must agree
/// with.
struct Dense {
  std::int64_t q_tokens = 0;
  std::int64_t k_tokens = 0;
  std::vector<std::uint8_t> cells;

  Dense(std::int64_t queries, std::int64_t keys)
      : q_tokens(queries), k_tokens(keys), cells(static_cast<std::size_t>(queries * keys), 0) {}
  /// The table of a predicate.
  Dense(std::int64_t queries, std::int64_t keys,
        const std::function<bool(std::int64_t q, std::int64_t k)>& allowed);

  std::uint8_t& at(std::int64_t q, std::int64_t k) {
    return cells[static_cast<std::size_t>(q * k_tokens + k)];
  }
  std::uint8_t at(std::int64_t q, std::int64_t k) const {
    return cells[static_cast<std::size_t>(q * k_tokens + k)];
  }
  std::int64_t area_in(Range queries, Range keys) const;
  std::int64_t area() const { return area_in({0, q_tokens}, {0, k_tokens}); }
  TileClass tile_class(Range queries, Range keys) const;
  std::vector<Range> row_intervals(std::int64_t q) const;
  std::vector<Range> column_intervals(std::int64_t k) const;
  bool operator==(const Dense&) const = default;
};

/// The sentence of slice.h about one cell.
bool slice_allows(const MaskSlice& slice, std::int64_t q, std::int64_t k);

/// A random mask and, for every head, its table.
struct RandomMask {
  Mask mask;
  std::vector<Dense> heads;
};

/// Up to 40 × 40 tokens (0, 1 and primes among the sizes), slices of all types that do not meet; a
/// third of the masks have block lists of one to three heads. To be called inside a property.
RandomMask random_mask();
/// Random slices that may meet.
std::vector<MaskSlice> random_slices(std::int64_t q_tokens, std::int64_t k_tokens, int count);
/// A number of tokens: 0, 1, primes and others.
std::int64_t random_tokens();
/// A range inside [0, limit), possibly empty.
Range random_range(std::int64_t limit);
/// Ascending disjoint ranges inside [0, limit), some touching.
std::vector<Range> random_ranges(std::int64_t limit);
BlockLists random_blocks(std::int64_t q_tokens, std::int64_t k_tokens);
/// True where the cell lies in a kept block of the head.
bool block_allows(const BlockLists& blocks, int head, std::int64_t q, std::int64_t k);

/// The mask's table as it says itself.
Dense dense_of(const Mask& mask, int head);

}  // namespace longca::oracle
