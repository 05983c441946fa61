#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "mask/mask_slice.h"
#include "parallel/executor/step_math.h"

namespace longca {

/// Rows of a sum that the same parts reach.
struct SumSegment {
  Range rows;
  std::vector<std::size_t> parts;  ///< ascending; none: nothing reaches them
};

/// The rows [0, tokens) of a sum, cut where a part begins or ends. Parts must lie inside.
std::vector<SumSegment> sum_segments(std::span<const RowsOfSum> parts, std::int64_t tokens);

/// Some tokens of a tensor.
TensorView token_rows(TensorView tensor, Range rows);

}  // namespace longca
