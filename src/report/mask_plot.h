#pragma once

#include <filesystem>

#include "mask/generators.h"

namespace longca {

/// Draws a mask through gnuplot: queries downwards, keys to the right, origin at the top left,
/// allowed cells filled, document boundaries as faint lines; head 0 of a mask that differs per
/// head. The suffix of `file` chooses the format: .png, .svg or .pdf. Throws InputError for another
/// suffix, if gnuplot is not installed, or if the file cannot be written.
void plot_mask(const GeneratedMask& mask, const MaskSpec& spec, const std::filesystem::path& file);

}  // namespace longca
