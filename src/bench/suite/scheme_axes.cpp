#include "bench/suite/scheme_axes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "parallel/schemes/scheme.h"
#include "parallel/transport/transports.h"

namespace longca {
namespace {

/// The factor of a scheme of two dimensions, which depends on heads and nodes but not on the mask.
int chosen_factor(const Scheme& scheme, const Case& c, int ranks_per_node) {
  return scheme.factor({.problem = c.problem(),
                        .mask = Mask::from_slices(c.tokens, c.tokens, {}),
                        .lengths = {},
                        .ranks = *c.ranks,
                        .ranks_per_node = ranks_per_node});
}

}  // namespace

std::vector<std::string> scheme_names() {
  std::vector<std::string> names;
  for (const auto& scheme : schemes()) names.push_back(scheme->name());
  return names;
}

std::vector<std::string> shard_names() {
  std::vector<std::string> names = shard_kind_names();
  names.insert(names.end(), {std::string(kPublishedShard), std::string(kBestShard)});
  return names;
}

std::vector<std::string> transport_names() {
  std::vector<std::string> names{"mpi"};
  const auto on_gpus = cuda_transport_names();
  names.insert(names.end(), on_gpus.begin(), on_gpus.end());
  return names;
}

Support check_transport(const Case& c) {
  const bool on_cpus = c.device == "cpu";
  if (on_cpus == (c.transport == "mpi")) return {};
  return Support::unsupported(
      fmt::format("the transport {} does not carry messages between {}: there it is {}",
                  c.transport.value_or(""), on_cpus ? "CPUs" : "GPUs",
                  on_cpus ? "mpi" : fmt::format("{}", fmt::join(cuda_transport_names(), " or "))));
}

void fill_in_scheme(Case& c, int ranks_per_node) {
  const Scheme& scheme = find_scheme(*c.scheme);
  if (!c.ranks) c.ranks = 1;
  if (!c.shard || *c.shard == kPublishedShard) c.shard = to_string(scheme.published_shard());
  if (*c.shard == kBestShard) c.shard = to_string(scheme.best_shard());
  if (!scheme.has_factor()) c.factor.reset();
  if (scheme.has_factor() && !c.factor) c.factor = chosen_factor(scheme, c, ranks_per_node);
  if (!c.transport) c.transport = c.device == "cpu" ? "mpi" : "peer";
}

ParallelProblem parallel_problem(const Case& c, const GeneratedMask& generated,
                                 int ranks_per_node) {
  return {.problem = c.problem(),
          .mask = generated.mask,
          .lengths = generated.lengths,
          .ranks = c.ranks.value(),
          .ranks_per_node = ranks_per_node,
          .shard = parse_shard_kind(c.shard.value()),
          .factor = c.factor.value_or(0)};
}

}  // namespace longca
