#pragma once

#include <cstdint>

#include "core/memory.h"

namespace longca {

/// Places the parts of a workspace one behind the other, each at a multiple of kPartAlignment.
struct WorkspaceParts {
  std::int64_t end = 0;  ///< bytes of all parts

  /// The offset of the next part.
  std::int64_t take(std::int64_t bytes) {
    const std::int64_t begin = end;
    end += aligned(bytes);
    return begin;
  }
};

}  // namespace longca
