#pragma once

#include <string>
#include <vector>

#include "cost/platform.h"

namespace longca {

/// A line for each kernel of which the page has rates and that this program does not know, with the
/// nearest name: nothing is timed by them. They are no error, since a page that was calibrated with
/// a plug-in serves without it.
std::vector<std::string> describe_unknown_kernels(const cost::Platform& page);

}  // namespace longca
