#pragma once

#include <iosfwd>

#include "advise/degrees.h"

namespace longca::advise {

/// Prints which degree to use, the next best, and what is counted; then the best choice of each
/// degree and those tied with the first; why degrees have none; and what would find out more. On
/// lines of at most `width` columns, where words are no longer.
void print_degrees(std::ostream& out, const Evidence& evidence, const WeighedDegrees& weighed,
                   int width);

}  // namespace longca::advise
