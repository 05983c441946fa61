#include <algorithm>
#include <array>

#include "core/error.h"
#include "core/nearest.h"
#include "parallel/schemes/all_schemes.h"

namespace longca {

int Scheme::factor(const ParallelProblem&) const {
  return 1;
}

std::span<const std::unique_ptr<Scheme>> schemes() {
  static const std::array kSchemes = {make_ulysses(), make_ring_p2p(),   make_ring_allgather(),
                                      make_usp(),     make_loongtrain(), make_magi()};
  return kSchemes;
}

const Scheme& find_scheme(const std::string& name) {
  std::vector<std::string> names;
  for (const auto& scheme : schemes()) {
    if (scheme->name() == name) return *scheme;
    names.push_back(scheme->name());
  }
  throw_input_error("unknown scheme '{}'{}", name, suggestion(name, names));
}

}  // namespace longca
