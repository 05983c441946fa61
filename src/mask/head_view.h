#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "mask/band.h"
#include "mask/mask.h"

namespace longca {

/// One head of a mask, or its transpose, as sweeps walk it.
struct HeadView {
  /// Kept column blocks per row block, as in BlockLists but of one head.
  struct Blocks {
    std::vector<std::int64_t> row_bounds;
    std::vector<std::int64_t> column_bounds;
    std::vector<std::int64_t> offsets;
    std::vector<std::int32_t> indices;
  };

  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::vector<Band> bands;  ///< without empty rows at either end, by first row
  std::optional<Blocks> blocks;

  /// Rows are queries, columns are keys.
  static HeadView of(const Mask& mask, int head);
  /// Rows are keys, columns are queries.
  static HeadView transposed(const Mask& mask, int head);
};

/// Walks a view's rows from top to bottom and knows which bands have a cell there.
class BandSweep {
 public:
  explicit BandSweep(std::span<const Band> bands) : bands_(bands) {}

  /// The bands that have a cell in `rows`; later calls ask for later rows.
  std::span<const Band* const> advance(Range rows);

 private:
  std::span<const Band> bands_;
  std::size_t next_ = 0;
  std::vector<const Band*> active_;
};

}  // namespace longca
