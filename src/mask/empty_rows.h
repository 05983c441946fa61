#pragma once

#include <cstdint>

#include "mask/mask.h"

namespace longca {

/// Rows of queries that see no key, over all lists of a mask with blocks: their output is 0. A
/// query block always keeps a block, but a causal mask may leave some of its queries none of it.
/// By several threads. Throws InternalError for a mask without blocks.
std::int64_t rows_without_keys(const Mask& mask);

}  // namespace longca
