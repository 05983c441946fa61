#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "attention/api/problem.h"
#include "core/status.h"
#include "cost/kernel_cost.h"
#include "mask/mask.h"
#include "parallel/partition/sharding_cache.h"
#include "parallel/plan/plan.h"

namespace longca {

/// The grid heads × context: the `head_ways` members of a CP rank hold the same tokens and
/// different heads.
struct GridShape {
  int head_ways = 1;
  /// Whether consecutive ranks are members of one CP rank (the exchange of heads stays in a node)
  /// or CP ranks of one member (the exchange of keys does).
  bool head_first = true;
  /// Whether CP ranks change places, under document_balanced, so that those which see the same keys
  /// come into the same nodes (node_order.h).
  bool ordered_by_node = false;
};

/// A problem and how ranks share it: everything that a plan depends on.
struct ParallelProblem {
  Problem problem;  ///< of all ranks together: tokens_q = tokens_k
  Mask mask;
  std::vector<std::int64_t> lengths;  ///< of the mask's documents; empty where it has none
  int ranks = 1;
  int ranks_per_node = 8;
  ShardKind shard = ShardKind::contiguous;
  /// Ranks that divide the heads, in schemes of heads × context; 0: the scheme's choice.
  int factor = 0;
  /// A step is cut where at least this many consecutive rows see none of its keys; 0: where that is
  /// cheaper (min_gap_of).
  std::int64_t min_gap = 0;
  /// Its rates decide between plans; never null, must outlive the problem.
  const cost::Platform* platform = &cost::default_platform();
  /// Of this problem alone: its plans share their partitions. Null: each plan makes its own.
  ShardingCache* shardings = nullptr;

  cost::HeadShape shape() const {
    return {problem.heads_q, problem.heads_k, problem.head_dim,
            static_cast<int>(size_of(problem.dtype))};
  }
};

/// A scheme of context parallelism: makes the plan of any rank. Stateless; adding one takes a file,
/// named in CMakeLists.txt, and its factory in all_schemes.h and registry.cpp.
class Scheme {
 public:
  virtual ~Scheme() = default;
  virtual std::string name() const = 0;
  virtual std::string description() const = 0;  ///< one line
  virtual std::string paper() const = 0;
  /// The sharding that its authors publish, and the one that is fastest here.
  virtual ShardKind published_shard() const = 0;
  virtual ShardKind best_shard() const = 0;
  /// Whether the scheme uses the axis `factor`.
  virtual bool has_factor() const { return false; }
  /// How ranks share heads and tokens: that of its plans.
  virtual GridShape grid_shape(const ParallelProblem& problem) const = 0;
  /// The factor in use: the one asked for, else the scheme's choice; 1 for schemes without.
  virtual int factor(const ParallelProblem& problem) const;
  /// Ok, or `unsupported` with the limit: heads, a factor that does not divide. Never throws.
  virtual Support supports(const ParallelProblem& problem) const = 0;
  /// The plan of one rank; only for supported problems. The same arguments give the same plan on
  /// every rank.
  virtual RankPlan plan(const ParallelProblem& problem, int rank) const = 0;
  /// Bytes that `rank` sends in a pass by the scheme's closed formula
  /// (docs/guide/context-parallel.md), computed from the shape alone or, where the mask decides,
  /// from the mask, never from a plan.
  virtual std::int64_t formula_bytes(const ParallelProblem& problem, int rank,
                                     bool backward) const = 0;
};

/// All schemes, in the order of the tables.
std::span<const std::unique_ptr<Scheme>> schemes();
/// Throws InputError that suggests the nearest name.
const Scheme& find_scheme(const std::string& name);

}  // namespace longca
