#pragma once

#include <string>

#include "mask/mask.h"

namespace longca {

/// A picture of the mask's head 0 as an <svg> element in token coordinates: queries downwards, keys
/// to the right. Colours come from the page's style (path). `label` is its description for readers
/// who cannot see it.
std::string mask_svg(const Mask& mask, const std::string& label);

}  // namespace longca
