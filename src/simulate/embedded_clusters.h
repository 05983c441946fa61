#pragma once

#include <span>

#include "cost/embedded_platforms.h"

namespace longca::simulate {

/// The pages of configs/clusters/, in order of names.
std::span<const cost::EmbeddedPage> embedded_clusters();

}  // namespace longca::simulate
