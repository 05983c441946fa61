#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>

#include "mask/band.h"

namespace longca {

/// Two of the bands that allow the same cell, or nothing. All bands have a cell. O(n log n): a
/// sweep over the queries that keeps the bands of the current row ordered by key and compares
/// neighbours only (M. Shamos and D. Hoey, "Geometric intersection problems", FOCS 1976).
/// Neighbours suffice because the ends of a band move by 0 or 1 key per row, so disjoint bands
/// never change places.
std::optional<std::pair<std::size_t, std::size_t>> find_overlap(std::span<const Band> bands);

}  // namespace longca
