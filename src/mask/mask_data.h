#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <typeindex>
#include <vector>

#include "mask/mask.h"
#include "mask/mask_slice.h"
#include "mask/range.h"

namespace longca {

/// The state of a Mask; private to src/mask.
struct Mask::Data {
  std::int64_t q_tokens = 0;
  std::int64_t k_tokens = 0;
  std::vector<MaskSlice> slices;
  std::vector<Band> bands;  ///< of the slices, in their order
  std::optional<BlockLists> blocks;
  std::vector<std::int64_t> areas;  ///< per head

  Range all_queries() const { return {0, q_tokens}; }
  Range all_keys() const { return {0, k_tokens}; }
  /// The bands' rows and columns; built on first use.
  const RangeIndex& rows() const;
  const RangeIndex& columns() const;
  /// Cells of the slices in a tile, without regard to block lists.
  std::int64_t slice_area_in(Range queries, Range keys) const;
  /// area_in of a mask with blocks.
  std::int64_t block_area_in(int head, Range queries, Range keys) const;
  /// Sets `areas`.
  void measure();
  /// Allowed cells per head of a mask with blocks.
  std::vector<std::int64_t> block_areas() const;

  mutable std::mutex derived_mutex;
  mutable std::map<std::type_index, std::shared_ptr<const void>> derived;

 private:
  mutable std::once_flag rows_once_, columns_once_;
  mutable RangeIndex rows_, columns_;
};

}  // namespace longca
