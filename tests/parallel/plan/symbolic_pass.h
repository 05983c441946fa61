#pragma once

#include <fmt/format.h>

#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "parallel/plan/accesses.h"
#include "parallel/plan/contents.h"
#include "parallel/plan/proof.h"
#include "parallel/plan/schedule.h"

namespace longca::testing {

/// What the whole problem asks for.
class Truth {
 public:
  Truth(const ParallelProblem& problem, SetStore& sets);

  int heads_q() const { return heads_q_; }
  int heads_k() const { return heads_k_; }
  std::int64_t tokens() const { return tokens_; }
  int kv_head(int head) const { return head * heads_k_ / heads_q_; }
  bool allows(int head, std::int64_t q, std::int64_t k) const;
  /// The keys that a query sees, and the (query head of the group, query) pairs that see a key.
  int keys_of(int head, std::int64_t q) const;
  int queries_of(int kv_head, std::int64_t k) const;
  /// What the softmax of a query is over: its keys, and the sink if there is one.
  int softmax_of(int head, std::int64_t q) const;
  bool has_sinks() const { return has_sinks_; }
  /// The member of a query's set that stands for the sink of its head: no key, no pair.
  std::int64_t sink() const { return heads_q_ / heads_k_ * tokens_; }
  /// The member of the latter sets.
  std::int64_t pair_of(int head, std::int64_t q) const {
    return (head - kv_head(head) * (heads_q_ / heads_k_)) * tokens_ + q;
  }
  /// All contributions that an element of a result must have.
  int expected(const Value& element) const;
  bool has_kv_heads(TensorRole role) const {
    return role == TensorRole::k || role == TensorRole::v || role == TensorRole::dk ||
           role == TensorRole::dv;
  }

 private:
  int heads_q_;
  int heads_k_;
  std::int64_t tokens_;
  bool has_sinks_;
  std::vector<std::vector<std::uint8_t>> dense_;  ///< per list of the mask
  std::vector<int> keys_of_;
  std::vector<int> keys_and_sink_of_;
  std::vector<int> queries_of_;
};

/// The state of all ranks while the plans run on symbols.
struct World {
  World(const ParallelProblem& parallel_problem, std::span<const RankPlan> rank_plans);

  const ParallelProblem& problem;
  std::span<const RankPlan> plans;
  SetStore sets;
  Truth truth;
  std::vector<Contents> contents;
  std::vector<std::string> faults;
};

/// Runs one pass of all ranks over the world.
class SymbolicPass {
 public:
  SymbolicPass(World& world, bool backward, const ProofOptions& options)
      : world_(world), backward_(backward), options_(options) {}

  /// Matches messages, finds an order, runs the ops in it, counts cells. False if the ranks cannot
  /// run to their end: then nothing was run.
  bool run();
  /// Whether these results lie where the plans say. Marks the messages that they came from.
  void check_results(std::span<const TensorRole> roles);
  /// Whether messages were needed; after the results.
  Traffic finish();

 private:
  struct Cursor {
    int rank = 0;
    int op = 0;
    bool complained = false;
  };

  void own(int rank);
  void begin(const Exchange& exchange);
  void end(const Exchange& exchange);
  void apply(const Copy& copy);
  void apply(const Attend& attend);
  void apply(const AttendBackward& attend);
  void apply(const Add& add);
  void apply(const Convert& convert);
  void apply(const Total& total);
  void apply(const Clear& clear);
  void apply(const JoinSinks& join);
  void apply(const SinkGradients& gradients);
  void apply(const Exchange&) {}

  /// Whether the region's row holds a value of the role, and then which.
  const Value* read(const Region& region, std::int64_t row, std::int64_t head, TensorRole role);
  /// The same, of an element that must be `like` in token and head.
  const Value* read_like(const Region& region, std::int64_t row, std::int64_t head, TensorRole role,
                         const Value& like);
  /// Adds `set` to the element, or makes it that.
  void accumulate(const Region& region, std::int64_t row, std::int64_t head, const Value& element,
                  bool first);
  /// o and lse of a finished softmax.
  void expect_finished(const Region& region, std::int64_t row, std::int64_t head, TensorRole role,
                       const Value& q);
  /// Calls visit(row, head, key, KV head) for the allowed cells of the op's mask, after checking
  /// that what stands there may see each other, and counts them.
  template <typename Visit>
  void for_each_cell(const Region& q, const Region& k, const Region& v, int mask, Visit&& visit);
  void count_cell(const Value& q, const Value& k);
  void check_cells();
  void check_sink_gradients();
  void place(const RankPlan& plan, const Placement& placement, std::vector<int>& found);

  Contents& contents() { return world_.contents[static_cast<std::size_t>(at_.rank)]; }
  const RankPlan& plan() const { return world_.plans[static_cast<std::size_t>(at_.rank)]; }
  template <typename... Args>
  void fault(fmt::format_string<Args...> format, Args&&... args);

  World& world_;
  bool backward_;
  ProofOptions options_;
  Cursor at_;
  std::vector<MatchedMessage> messages_;
  std::map<std::tuple<int, int, int>, int> sent_;                 ///< (rank, op, index) → message
  std::map<std::tuple<int, int, int>, int> received_;             ///< likewise
  std::vector<std::vector<Value>> in_flight_;                     ///< per message: rows × heads
  std::vector<std::set<std::tuple<TensorRole, int, int>>> held_;  ///< inputs a rank has had
  Origins origins_;
  std::vector<int> sink_gradients_;  ///< times a row was counted in dsink: heads × queries
  std::vector<bool> cleared_dsink_;  ///< by rank
  std::vector<std::uint8_t> cells_;  ///< times computed: heads × queries × keys
};

template <typename... Args>
void SymbolicPass::fault(fmt::format_string<Args...> format, Args&&... args) {
  if (at_.complained) return;
  at_.complained = true;
  world_.faults.push_back(fmt::format("{}: {}", name_of(plan(), backward_, at_.op),
                                      fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace longca::testing
