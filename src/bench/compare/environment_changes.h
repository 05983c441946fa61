#pragma once

#include <span>
#include <vector>

#include "bench/compare/compare_records.h"

namespace longca {

/// What the environments of two lists of records differ in, of what times depend on: processor,
/// GPUs, driver, version, commit, compiler, build type, libraries, plug-ins, in this order.
std::vector<EnvironmentChange> environment_changes(std::span<const Record> base,
                                                   std::span<const Record> next);

}  // namespace longca
