#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <typeindex>
#include <vector>

#include "mask/band.h"
#include "mask/mask.h"
#include "mask/range_index.h"

namespace longca {

/// What a Mask holds: only src/mask/mask*.cpp include this.
struct Mask::Data {
  std::int64_t q_tokens = 0;
  std::int64_t k_tokens = 0;
  std::vector<MaskSlice> slices;
  std::vector<Band> bands;  ///< of the slices, in their order
  std::optional<BlockLists> blocks;
  std::vector<std::int64_t> areas;  ///< per head

  Range all_queries() const { return {0, q_tokens}; }
  Range all_keys() const { return {0, k_tokens}; }
  /// Which slices have a cell in a row, or a column; built on first use.
  const RangeIndex& rows() const;
  const RangeIndex& columns() const;
  /// Cells of the slices in a tile, block lists aside.
  std::int64_t slice_area_in(Range queries, Range keys) const;
  /// area_in of a mask with blocks.
  std::int64_t block_area_in(int head, Range queries, Range keys) const;
  /// Fills `areas` from the rest.
  void measure();
  /// Allowed cells of every head of a mask with blocks.
  std::vector<std::int64_t> block_areas() const;

  mutable std::mutex derived_mutex;
  mutable std::map<std::type_index, std::shared_ptr<const void>> derived;

 private:
  mutable std::once_flag rows_once_, columns_once_;
  mutable RangeIndex rows_, columns_;
};

/// Throws InputError, naming the head and block, unless the lists fit the mask.
void check_block_lists(const BlockLists& blocks, std::int64_t q_tokens, std::int64_t k_tokens);

/// The block that holds `token`, for ascending bounds from 0.
std::int64_t block_of(const std::vector<std::int64_t>& bounds, std::int64_t token);

}  // namespace longca
