#pragma once

#include <string>
#include <vector>

#include "mask/mask.h"

namespace longca {

/// A corner of a picture of a mask, in tokens: keys to the right, queries downwards.
struct Point {
  double key = 0;
  double query = 0;
  bool operator==(const Point&) const = default;
};
using Polygon = std::vector<Point>;

/// Polygons of one tone: `share` of their cells is allowed, in (0, 1].
struct MaskShape {
  double share = 1;
  std::vector<Polygon> polygons;
};

/// The outline of a slice's allowed cells. Up to 64 rows with their steps, cell by cell; above that
/// diagonals are straight, which is off by half a cell.
Polygon slice_outline(const MaskSlice& slice);

/// The allowed cells of one head as shapes. Slices and up to 64 × 64 blocks become polygons of
/// their own; a finer block mask is drawn as 64 × 64 squares toned in eighths of what they allow.
std::vector<MaskShape> mask_shapes(const Mask& mask, int head);

}  // namespace longca
