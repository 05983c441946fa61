#include "parallel/plan/proof.h"

#include <fmt/format.h>

#include <array>

#include "parallel/plan/structure.h"
#include "parallel/plan/symbolic_pass.h"

namespace longca::testing {

Truth::Truth(const ParallelProblem& problem, SetStore& sets)
    : heads_q_(problem.problem.heads_q),
      heads_k_(problem.problem.heads_k),
      tokens_(problem.mask.q_tokens()),
      has_sinks_(problem.problem.sink) {
  for (int list = 0; list < problem.mask.heads(); ++list) {
    dense_.push_back(problem.mask.dense(list));
  }
  for (int head = 0; head < heads_q_; ++head) {
    for (std::int64_t q = 0; q < tokens_; ++q) {
      std::vector<std::int64_t> keys;
      for (std::int64_t k = 0; k < tokens_; ++k) {
        if (allows(head, q, k)) keys.push_back(k);
      }
      keys_of_.push_back(sets.make(keys));
      if (!has_sinks_) continue;
      keys.push_back(sink());
      keys_and_sink_of_.push_back(sets.make(keys));
    }
  }
  const int group = heads_q_ / heads_k_;
  for (int kv_head = 0; kv_head < heads_k_; ++kv_head) {
    for (std::int64_t k = 0; k < tokens_; ++k) {
      std::vector<std::int64_t> queries;
      for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
        for (std::int64_t q = 0; q < tokens_; ++q) {
          if (allows(head, q, k)) queries.push_back(pair_of(head, q));
        }
      }
      queries_of_.push_back(sets.make(queries));
    }
  }
}

bool Truth::allows(int head, std::int64_t q, std::int64_t k) const {
  const auto lists = static_cast<std::int64_t>(dense_.size());
  const auto& dense = dense_[static_cast<std::size_t>(head * lists / heads_q_)];
  return dense[static_cast<std::size_t>(q * tokens_ + k)] != 0;
}

int Truth::keys_of(int head, std::int64_t q) const {
  return keys_of_[static_cast<std::size_t>(head * tokens_ + q)];
}

int Truth::softmax_of(int head, std::int64_t q) const {
  return has_sinks_ ? keys_and_sink_of_[static_cast<std::size_t>(head * tokens_ + q)]
                    : keys_of(head, q);
}

int Truth::queries_of(int kv_head, std::int64_t k) const {
  return queries_of_[static_cast<std::size_t>(kv_head * tokens_ + k)];
}

int Truth::expected(const Value& element) const {
  if (has_kv_heads(element.role)) return queries_of(element.head, element.token);
  return element.role == TensorRole::dq ? keys_of(element.head, element.token)
                                        : softmax_of(element.head, element.token);
}

World::World(const ParallelProblem& parallel_problem, std::span<const RankPlan> rank_plans)
    : problem(parallel_problem),
      plans(rank_plans),
      sets(parallel_problem.problem.group_size() * parallel_problem.mask.q_tokens() + 1),
      truth(parallel_problem, sets) {
  for (const RankPlan& plan : plans) contents.emplace_back(plan);
}

std::string Proof::text() const {
  std::string text;
  for (const std::string& fault : faults) text += fault + "\n";
  return text;
}

Proof prove(const ParallelProblem& problem, std::span<const RankPlan> plans,
            const ProofOptions& options) {
  Proof proof;
  if (std::ssize(plans) != problem.ranks) {
    proof.faults.push_back(fmt::format("{} plans for {} ranks", plans.size(), problem.ranks));
  }
  for (int rank = 0; rank < std::ssize(plans); ++rank) {
    const RankPlan& plan = plans[static_cast<std::size_t>(rank)];
    if (plan.rank != rank || plan.ranks != problem.ranks) {
      proof.faults.push_back(
          fmt::format("plan {} is of rank {} of {}", rank, plan.rank, plan.ranks));
    }
    check_structure(plan, proof.faults);
  }
  if (!proof.ok()) return proof;  // what follows reads through the indices
  for (const RankPlan& plan : plans) {
    check_races(plan, false, proof.faults);
    check_races(plan, true, proof.faults);
  }

  World world(problem, plans);
  constexpr std::array kForward = {TensorRole::o, TensorRole::lse};
  constexpr std::array kBackward = {TensorRole::dq, TensorRole::dk, TensorRole::dv};
  SymbolicPass forward(world, false, options);
  if (forward.run()) {
    forward.check_results(kForward);
    proof.forward = forward.finish();
    SymbolicPass backward(world, true, options);
    if (problem.problem.backward && backward.run()) {
      backward.check_results(kBackward);
      proof.backward = backward.finish();
    }
  }
  proof.faults.insert(proof.faults.end(), world.faults.begin(), world.faults.end());
  return proof;
}

Proof prove(const ParallelProblem& problem, const Scheme& scheme, const ProofOptions& options) {
  std::vector<RankPlan> plans;
  for (int rank = 0; rank < problem.ranks; ++rank) plans.push_back(scheme.plan(problem, rank));
  return prove(problem, plans, options);
}

}  // namespace longca::testing
