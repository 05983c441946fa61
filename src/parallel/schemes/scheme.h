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
#include "parallel/partition/sharding.h"
#include "parallel/plan/plan.h"

namespace longca {

/// The work that ranks share, and how: everything that a plan is a function of.
struct ParallelProblem {
  Problem problem;  ///< the whole: tokens_q = tokens_k
  Mask mask;
  std::vector<std::int64_t> lengths;  ///< of the mask's documents; empty where it has none
  int ranks = 1;
  int ranks_per_node = 8;
  ShardKind shard = ShardKind::contiguous;
  /// How many ranks share the heads where a scheme has both dimensions; 0: the scheme's choice.
  int factor = 0;
  /// A step is cut where so many rows in sequence see none of its keys; 0: where that pays.
  std::int64_t min_gap = 0;
  /// By whose rates plans are weighed; never null, and outlives the problem.
  const cost::Platform* platform = &cost::default_platform();

  cost::HeadShape shape() const {
    return {problem.heads_q, problem.heads_k, problem.head_dim,
            static_cast<int>(size_of(problem.dtype))};
  }
};

/// A scheme of context parallelism: a printer of plans. Stateless; adding one is a file and a line
/// in schemes/registry.cpp.
class Scheme {
 public:
  virtual ~Scheme() = default;
  virtual std::string name() const = 0;
  virtual std::string description() const = 0;  ///< one line
  virtual std::string paper() const = 0;
  /// As its authors publish it, and what is best here.
  virtual ShardKind published_shard() const = 0;
  virtual ShardKind best_shard() const = 0;
  /// Whether the axis `factor` means something to it.
  virtual bool has_factor() const { return false; }
  /// The factor used where none was asked for; 1 for schemes without.
  virtual int factor(const ParallelProblem& problem) const;
  /// Yes, or `unsupported` and the limit: heads, a factor that does not divide. Never throws.
  virtual Support supports(const ParallelProblem& problem) const = 0;
  /// The plan of one rank; only for supported problems. The same for the same arguments, anywhere.
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
