#pragma once

#include <cstdint>
#include <span>

#include "attention/api/problem.h"
#include "mask/mask.h"

namespace longca {

/// Lower bound of the bytes that the owner of the tokens `own` (ascending) receives in a pass if
/// queries stay in place: the K and V rows of other tokens that its queries see, each once; in a
/// backward pass also one float32 sum of dK and dV for each of its own rows that other ranks'
/// queries see. Counted per KV head. The mean over ranks is a lower bound for the rank that sends
/// most; schemes that move queries (those with Ulysses inside) may send less.
std::int64_t min_bytes_received(const Problem& whole, const Mask& mask, std::span<const Range> own);

}  // namespace longca
