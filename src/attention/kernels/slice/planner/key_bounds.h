#pragma once

#include <cstdint>
#include <vector>

#include "mask/mask.h"

namespace longca::slice {

/// Bounds of key tiles of at most 128 keys, ascending from 0 to the number of keys. Tiles start
/// where a slice's keys do (a document), if that saves the slice a tile that it has little of.
std::vector<std::int64_t> key_bounds(const Mask& mask);

}  // namespace longca::slice
