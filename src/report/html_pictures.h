#pragma once

#include <string>

#include "report/view.h"

namespace longca {

/// The page's pictures: a <figure> per distinct mask of cells on one device, and of the masks that
/// only cells over ranks have one, at their shortest length; named by its mask and tokens in
/// data-mask and data-tokens. Masks that this program does not know, or whose picture would cost
/// more than it shows, are counted in a sentence at the end.
std::string html_pictures(const View& single, const View& over_ranks);

}  // namespace longca
