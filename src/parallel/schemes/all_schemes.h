#pragma once

#include <memory>

#include "parallel/schemes/scheme.h"

namespace longca {

/// The factories of the schemes, one per file, for the registry.
std::unique_ptr<Scheme> make_ulysses();
std::unique_ptr<Scheme> make_ring_p2p();
std::unique_ptr<Scheme> make_ring_allgather();
std::unique_ptr<Scheme> make_usp();
std::unique_ptr<Scheme> make_loongtrain();
std::unique_ptr<Scheme> make_magi();

}  // namespace longca
