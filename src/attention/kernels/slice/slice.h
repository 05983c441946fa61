#pragma once

#include <cstdint>
#include <memory>

#include "attention/api/kernel.h"

namespace longca {

/// What slice can do; also in builds without CUDA.
Capabilities slice_capabilities();

/// Which code runs.
enum class SlicePath : std::uint8_t {
  automatic,  ///< what the device has
  sm90,       ///< wgmma and TMA, for compute capability 9.0
  generic,    ///< mma.sync, for 8.0 and later
};

/// The project's own kernel: any mask by lists of key sub-tiles per query tile and of query tiles
/// per key tile (docs/design/slice.md); the heads of a group packed into the rows of a tile. Tests
/// give `path`.
std::unique_ptr<Kernel> make_slice();
std::unique_ptr<Kernel> make_slice(SlicePath path);

}  // namespace longca
