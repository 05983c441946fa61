#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "mask/generators.h"
#include "mask/mask.h"

namespace longca {

/// Draws a mask through gnuplot: queries downwards, keys to the right, origin at the top left,
/// allowed cells filled, document boundaries as faint lines; head 0 of a mask that differs per
/// head. The suffix of `file` chooses the format: .png, .svg or .pdf. Throws InputError for another
/// suffix, if gnuplot is not installed, or if the file cannot be written.
void plot_mask(const GeneratedMask& mask, const MaskSpec& spec, const std::filesystem::path& file);

/// The same picture of head 0 as an <svg> element in token coordinates, without boundaries. The
/// page's style colours it (path). `label` describes it to screen readers.
std::string mask_svg(const Mask& mask, const std::string& label);

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

/// The outline of a slice's allowed cells: exact, cell by cell, up to 64 rows; above that diagonals
/// are straight, which is off by half a cell.
Polygon slice_outline(const MaskSlice& slice);

/// The allowed cells of one head as shapes. Slices and up to 64 × 64 blocks are exact polygons; a
/// finer block mask is drawn as 64 × 64 squares, each in a tone of eighths of its allowed share.
std::vector<MaskShape> mask_shapes(const Mask& mask, int head);

}  // namespace longca
