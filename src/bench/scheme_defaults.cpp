#include "bench/scheme_defaults.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "core/error.h"
#include "core/nearest.h"
#include "parallel/plan/sharding.h"

namespace longca {
namespace {

struct SchemeRow {
  std::string_view name;
  std::string_view published;
  std::string_view best;
  bool has_factor;
};

constexpr std::array kSchemes{
    SchemeRow{"ulysses", "contiguous", "contiguous", false},
    SchemeRow{"ring_p2p", "zigzag", "balanced", false},
    SchemeRow{"ring_allgather", "zigzag", "balanced", false},
    SchemeRow{"usp", "zigzag", "zigzag", true},
    SchemeRow{"loongtrain", "zigzag", "zigzag", true},
    SchemeRow{"magi", "balanced", "balanced", false},
};

const SchemeRow& find_row(const std::string& name) {
  for (const SchemeRow& row : kSchemes) {
    if (row.name == name) return row;
  }
  throw_input_error("unknown scheme '{}'{}", name, suggestion(name, scheme_names()));
}

}  // namespace

std::vector<std::string> scheme_names() {
  std::vector<std::string> names;
  for (const SchemeRow& row : kSchemes) names.emplace_back(row.name);
  return names;
}

std::vector<std::string> shard_names() {
  return {
      "contiguous",           "zigzag", "document_zigzag", "balanced", std::string(kPublishedShard),
      std::string(kBestShard)};
}

void fill_in_scheme(Case& c, int ranks_per_node) {
  const SchemeRow& scheme = find_row(*c.scheme);
  if (!c.ranks) c.ranks = 1;
  if (!c.shard || *c.shard == kPublishedShard) c.shard = scheme.published;
  if (*c.shard == kBestShard) c.shard = scheme.best;
  if (!scheme.has_factor) c.factor.reset();
  if (scheme.has_factor && !c.factor) {
    c.factor = std::gcd(std::gcd(*c.ranks, ranks_per_node), c.heads_k);
  }
  if (!c.transport) c.transport = c.device == "cpu" ? "mpi" : "peer";
}

}  // namespace longca
