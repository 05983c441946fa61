#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "attention/api/kernel.h"
#include "attention/api/problem.h"

namespace longca {

/// Head dimensions that the sm90 kernels compute as 128, with zeros beyond; sm80's do not.
inline constexpr std::array<int, 2> kPaddedDims = {80, 96};

/// Wider heads, for which the sm90 kernels have instances of their own; sm80's do not.
inline constexpr int kWideDim = 256;
inline constexpr DimPair kWidePair = {192, 128};

/// What slice can do; also in builds without CUDA.
Capabilities slice_capabilities();
/// Why the kernels cannot count query heads times the mask's block lists, which they do in 32 bits.
/// Ok if they can.
Support check_head_lists(const Problem& problem, const Mask& mask);

/// Which set of kernels runs.
enum class SlicePath : std::uint8_t {
  automatic,  ///< by the device
  sm90,       ///< wgmma and TMA, for compute capability 9.0
  sm80,       ///< mma.sync, for 8.0 and later
};

/// The project's own kernel, for any mask: walks lists of key sub-tiles per query tile, and of
/// query tiles per key tile, with the heads of a GQA group packed into the rows of a tile
/// (docs/design/slice.md). Tests give `path`.
std::unique_ptr<Kernel> make_slice();
std::unique_ptr<Kernel> make_slice(SlicePath path);

}  // namespace longca
