#pragma once

#include <vector>

#include "mask/mask_slice.h"

namespace longca {

/// Which rows of a result have been written.
class Coverage {
 public:
  /// Marks `rows` as written; returns those that were not before.
  std::vector<Range> add(Range rows);
  /// The rows of `whole` that nothing has written.
  std::vector<Range> gaps(Range whole) const;
  /// Ascending, not touching.
  const std::vector<Range>& rows() const { return rows_; }

 private:
  std::vector<Range> rows_;
};

}  // namespace longca
