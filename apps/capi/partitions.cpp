// Context parallelism of longca.h: who owns which tokens.

#include "partitions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "answer.h"
#include "handles.h"
#include "longca.h"
#include "parallel/schemes/scheme.h"
#include "problems.h"

using namespace longca;
using namespace longca::capi;

namespace longca::capi {

void check_supported(const longca_partition& p, const ParallelProblem& parallel) {
  if (const Support s = p.scheme->supports(parallel); !s.ok()) {
    throw Refusal(LONGCA_UNSUPPORTED, fmt::format("{}: {}", p.scheme->name(), s.reason));
  }
}

namespace {

longca_problem shape_of(const longca_partition_options& o) {
  longca_problem shape = LONGCA_PROBLEM_INIT;
  shape.heads_q = o.heads_q;
  shape.heads_k = o.heads_k;
  shape.head_dim = o.head_dim;
  shape.device = o.device;
  return shape;
}

std::unique_ptr<longca_partition> make_partition(const longca_partition_options& o,
                                                 const longca_mask& mask) {
  check_rank(o.rank, o.ranks);
  if (o.ranks_per_node < 1) throw_input_error("ranks_per_node = {}: at least 1", o.ranks_per_node);
  if (o.reserved != 0) throw_input_error("reserved = {}: 0", o.reserved);
  if (o.factor < 0) throw_input_error("factor = {}: at least 0", o.factor);
  if (mask.mask.q_tokens() != mask.mask.k_tokens()) {
    throw_input_error("the mask has {} queries and {} keys: ranks share as many of both",
                      mask.mask.q_tokens(), mask.mask.k_tokens());
  }
  const Scheme& scheme = find_scheme(o.scheme == nullptr ? "magi" : o.scheme);
  std::unique_ptr<longca_partition> p(new longca_partition{
      {},
      {.problem = to_problem(shape_of(o), mask.mask),
       .mask = mask.mask,
       .lengths = mask.documents,
       .ranks = o.ranks,
       .ranks_per_node = o.ranks_per_node,
       .shard = o.shard == nullptr ? scheme.best_shard() : parse_shard_kind(o.shard)},
      &scheme,
      o.rank,
      {},
      {}});
  p->parallel.shardings = &p->shardings;
  // Empty documents are none to a sharding.
  std::erase(p->parallel.lengths, 0);
  if (scheme.has_factor()) {
    p->parallel.factor = o.factor != 0 ? o.factor : scheme.factor(p->parallel);
  }
  check_supported(*p, p->parallel);
  p->grid.emplace(p->parallel, scheme.grid_shape(p->parallel));
  p->tokens = p->grid->own_shard(o.rank).ranges;
  return p;
}

/// Fills the first `capacity` of the ranges, or none where there is no place; returns how many
/// there are.
size_t fill(const std::vector<Range>& tokens, int64_t* ranges, size_t capacity) {
  for (size_t i = 0; ranges != nullptr && i < std::min(capacity, tokens.size()); ++i) {
    ranges[2 * i] = tokens[i].begin;
    ranges[2 * i + 1] = tokens[i].end;
  }
  return tokens.size();
}

}  // namespace
}  // namespace longca::capi

extern "C" {

longca_status longca_partition_create(const longca_partition_options* options,
                                      const longca_mask* mask, longca_partition** partition) {
  return answer([&] {
    constexpr longca_partition_options kDefaults = LONGCA_PARTITION_OPTIONS_INIT;
    const auto given =
        known_part(required(options, "options"), kDefaults, "longca_partition_options");
    const longca_mask& m = required(mask, "mask");
    give(partition, "partition", [&] { return make_partition(given, m); });
  });
}

size_t longca_partition_ranges(const longca_partition* partition, int64_t* ranges,
                               size_t capacity) {
  return partition == nullptr ? 0 : fill(partition->tokens, ranges, capacity);
}

longca_status longca_partition_ranges_of(const longca_partition* partition, int32_t rank,
                                         int64_t* ranges, size_t capacity, size_t* count) {
  return answer([&] {
    const longca_partition& p = required(partition, "partition");
    size_t& number = required(count, "count");
    check_rank(rank, p.parallel.ranks);
    number = fill(p.grid->own_shard(rank).ranges, ranges, capacity);
  });
}

void longca_partition_release(longca_partition* partition) {
  delete partition;
}

}  // extern "C"
