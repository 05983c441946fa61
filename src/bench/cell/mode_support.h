#pragma once

#include "bench/suite/case.h"
#include "core/status.h"

namespace longca {

/// Whether the case can be timed in its mode: one GPU's work alone can be replayed as a CUDA graph.
Support check_mode(const Case& c);

}  // namespace longca
