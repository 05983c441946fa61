#pragma once

#include "bench/case.h"
#include "mask/generators.h"

namespace longca {

/// The mask of a case: as its spec draws it or, where it selects blocks by scores, from the values
/// of its q and k, drawn on the case's device for this alone: every rank of a case selects the
/// same.
GeneratedMask case_mask(const Case& c);

}  // namespace longca
