#pragma once

#include <cstdint>

#include "core/rounding.h"

namespace longca::slice {

/// Places the parts of a workspace one behind the other, each at a multiple of 256 bytes.
struct WorkspaceParts {
  std::int64_t end = 0;  ///< bytes of all parts

 protected:
  /// The offset of the next part.
  std::int64_t take(std::int64_t bytes) {
    const std::int64_t begin = end;
    end += round_up(bytes, 256);
    return begin;
  }
};

}  // namespace longca::slice
