#pragma once

#include <memory>

#include "parallel/schemes/scheme.h"

namespace longca {

/// One line per scheme: what its file offers to the registry.
std::unique_ptr<Scheme> make_ulysses();
std::unique_ptr<Scheme> make_ring_p2p();

}  // namespace longca
