#include "parallel/plan/sample_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace longca::testing {
namespace {

class SamplePlan {
 public:
  SamplePlan(const ParallelProblem& problem, const Sharding& sharding, int rank)
      : problem_(problem), sharding_(sharding) {
    plan_.rank = rank;
    plan_.ranks = problem.ranks;
    for (int p = 0; p < problem.ranks; ++p) max_rows_ = std::max(max_rows_, sharding.rows(p));
    for (const TensorRole role :
         {TensorRole::q, TensorRole::k, TensorRole::v, TensorRole::o, TensorRole::lse,
          TensorRole::dout, TensorRole::dq, TensorRole::dk, TensorRole::dv}) {
      buffer(std::string(to_string(role)), role, sharding.rows(rank), false).external = true;
    }
  }

  RankPlan build() {
    forward();
    place({TensorRole::o, TensorRole::lse});
    if (problem_.problem.backward) {
      ops_ = &plan_.backward;
      backward();
      place({TensorRole::dq, TensorRole::dk, TensorRole::dv});
    }
    return std::move(plan_);
  }

 private:
  int rank() const { return plan_.rank; }
  int ranks() const { return plan_.ranks; }
  static int external(TensorRole role) { return static_cast<int>(role); }
  std::int64_t own_tokens() const { return sharding_.tokens(rank()); }

  int heads(TensorRole role) const {
    const bool kv = role == TensorRole::k || role == TensorRole::v || role == TensorRole::dk ||
                    role == TensorRole::dv;
    return kv ? problem_.problem.heads_k : problem_.problem.heads_q;
  }
  PlanBuffer& buffer(std::string name, TensorRole role, std::int64_t tokens, bool float32) {
    plan_.buffers.push_back({std::move(name), role, tokens, heads(role), float32});
    return plan_.buffers.back();
  }
  int add_buffer(const char* name, TensorRole role, std::int64_t tokens, bool float32) {
    buffer(name, role, tokens, float32);
    return static_cast<int>(plan_.buffers.size()) - 1;
  }
  Region rows(int index, std::int64_t begin, std::int64_t count) const {
    Region region = plan_.whole(index);
    region.tokens = {begin, begin + count};
    return region;
  }
  Region own(TensorRole role) const { return rows(external(role), 0, own_tokens()); }
  int add_op(Op op) {
    ops_->push_back(std::move(op));
    return static_cast<int>(ops_->size()) - 1;
  }
  /// The mask of the own queries on another CP rank's keys; −1 if there is no cell.
  int mask_on(int cp_rank) {
    Mask mask = problem_.mask.sub_mask(sharding_.ranges(rank()), sharding_.ranges(cp_rank));
    if (mask.mean_area() == 0) return -1;
    plan_.masks.push_back(std::move(mask));
    return static_cast<int>(plan_.masks.size()) - 1;
  }

  void forward() {
    const int sum = add_buffer("o in float32", TensorRole::o, own_tokens(), true);
    int k[2];
    int v[2];
    for (int i : {0, 1}) {
      k[i] = add_buffer("k of the ring", TensorRole::k, max_rows_, false);
      v[i] = add_buffer("v of the ring", TensorRole::v, max_rows_, false);
    }
    int pass = -1;
    std::vector<int> reader;  // of the step's keys
    bool first = true;
    for (int step = 0; step < ranks(); ++step) {
      const int cp_rank = (rank() - step + ranks()) % ranks();
      const Region k_rows = step == 0 ? plan_.whole(external(TensorRole::k))
                                      : rows(k[step % 2], 0, sharding_.rows(cp_rank));
      const Region v_rows = step == 0 ? plan_.whole(external(TensorRole::v))
                                      : rows(v[step % 2], 0, sharding_.rows(cp_rank));
      const std::vector<int> arrived = pass < 0 ? std::vector<int>{} : std::vector{pass};
      if (step + 1 < ranks()) {
        const int to = (rank() + 1) % ranks();
        const int from = (rank() - 1 + ranks()) % ranks();
        const std::int64_t next_rows = sharding_.rows((cp_rank - 1 + ranks()) % ranks());
        const int at = (step + 1) % 2;
        pass = add_op(
            {Exchange{Pattern::send_receive,
                      {{to, k_rows}, {to, v_rows}},
                      {{from, rows(k[at], 0, next_rows)}, {from, rows(v[at], 0, next_rows)}}},
             reader, Lane::communication, step});
      }
      reader.clear();
      const int mask = mask_on(cp_rank);
      if (mask < 0) continue;
      const std::int64_t tokens = sharding_.tokens(cp_rank);
      reader = {add_op({Attend{own(TensorRole::q), rows(k_rows.buffer, 0, tokens),
                               rows(v_rows.buffer, 0, tokens), plan_.whole(sum),
                               own(TensorRole::lse), mask, first},
                        arrived, Lane::compute, step})};
      first = false;
    }
    if (first) {
      add_op({Clear{plan_.whole(sum)}, {}, Lane::compute, ranks() - 1});
      add_op({Clear{own(TensorRole::lse)}, {}, Lane::compute, ranks() - 1});
    }
    add_op({Convert{plan_.whole(sum), own(TensorRole::o)}, {}, Lane::compute, ranks() - 1});
  }

  struct Gathered {
    int k, v, dk, dv;              ///< of all CP ranks; dk, dv float32
    int arriving_dk, arriving_dv;  ///< own rows, once per rank
  };

  void backward() {
    const std::int64_t all = max_rows_ * ranks();
    const Gathered g = {add_buffer("k of all", TensorRole::k, all, false),
                        add_buffer("v of all", TensorRole::v, all, false),
                        add_buffer("dk of all", TensorRole::dk, all, true),
                        add_buffer("dv of all", TensorRole::dv, all, true),
                        add_buffer("dk from others", TensorRole::dk, all, true),
                        add_buffer("dv from others", TensorRole::dv, all, true)};
    const int dq = add_buffer("dq in float32", TensorRole::dq, own_tokens(), true);
    Exchange gather{Pattern::all_gather, {}, {}};
    for_others([&](int peer) {
      for (const auto& [role, into] : {std::pair{TensorRole::k, g.k}, {TensorRole::v, g.v}}) {
        gather.sends.push_back({peer, plan_.whole(external(role))});
        gather.receives.push_back({peer, rows(into, peer * max_rows_, sharding_.rows(peer))});
      }
    });
    const bool alone = gather.sends.empty();
    const int arrived = alone ? -1 : add_op({gather, {}, Lane::communication, 0});
    add_op({Clear{plan_.whole(dq)}, {}, Lane::compute, 0});
    for (int step = 0; step < ranks(); ++step) attend_backward(g, dq, step, arrived);
    add_op({Convert{plan_.whole(dq), own(TensorRole::dq)}, {}, Lane::compute, ranks()});
    if (!alone) reduce(g);
    const std::int64_t at = rank() * max_rows_;
    add_op(
        {Convert{rows(g.dk, at, own_tokens()), own(TensorRole::dk)}, {}, Lane::compute, ranks()});
    add_op(
        {Convert{rows(g.dv, at, own_tokens()), own(TensorRole::dv)}, {}, Lane::compute, ranks()});
  }

  void attend_backward(const Gathered& g, int dq, int step, int arrived) {
    const int cp_rank = (rank() + step) % ranks();
    const std::int64_t at = cp_rank * max_rows_;
    const std::int64_t tokens = sharding_.tokens(cp_rank);
    const int mask = mask_on(cp_rank);
    const Region dk = rows(g.dk, at, tokens);
    const Region dv = rows(g.dv, at, tokens);
    if (mask < 0) {
      add_op({Clear{dk}, {}, Lane::compute, step});
      add_op({Clear{dv}, {}, Lane::compute, step});
      return;
    }
    const bool own_keys = cp_rank == rank();
    add_op(
        {AttendBackward{own(TensorRole::dout), own(TensorRole::q),
                        own_keys ? own(TensorRole::k) : rows(g.k, at, tokens),
                        own_keys ? own(TensorRole::v) : rows(g.v, at, tokens), own(TensorRole::o),
                        own(TensorRole::lse), plan_.whole(dq), dk, dv, mask, false, true},
         own_keys ? std::vector<int>{} : std::vector{arrived}, Lane::compute, step});
  }

  void reduce(const Gathered& g) {
    Exchange scatter{Pattern::reduce_scatter, {}, {}};
    for_others([&](int peer) {
      for (const auto& [from, into] : {std::pair{g.dk, g.arriving_dk}, {g.dv, g.arriving_dv}}) {
        scatter.sends.push_back({peer, rows(from, peer * max_rows_, sharding_.tokens(peer))});
        scatter.receives.push_back({peer, rows(into, peer * max_rows_, own_tokens())});
      }
    });
    const int computed = static_cast<int>(ops_->size()) - 1;
    const int arrived = add_op({scatter, {computed}, Lane::communication, ranks()});
    for_others([&](int peer) {
      for (const auto& [sum, part] : {std::pair{g.dk, g.arriving_dk}, {g.dv, g.arriving_dv}}) {
        add_op({Add{rows(part, peer * max_rows_, own_tokens()),
                    rows(sum, rank() * max_rows_, own_tokens())},
                {arrived},
                Lane::compute,
                ranks()});
      }
    });
  }

  template <typename Visit>
  void for_others(Visit&& visit) const {
    for (int peer = 0; peer < ranks(); ++peer) {
      if (peer != rank()) visit(peer);
    }
  }

  void place(std::initializer_list<TensorRole> roles) {
    for (const TensorRole role : roles) {
      plan_.results.push_back({role, own(role), sharding_.ranges(rank()), {0, heads(role)}});
    }
  }

  const ParallelProblem& problem_;
  const Sharding& sharding_;
  std::int64_t max_rows_ = 0;
  RankPlan plan_;
  std::vector<Op>* ops_ = &plan_.forward;
};

}  // namespace

std::vector<RankPlan> sample_plans(const ParallelProblem& problem) {
  const Sharding sharding(problem.shard, problem.mask, problem.lengths, problem.ranks);
  std::vector<RankPlan> plans;
  for (int rank = 0; rank < problem.ranks; ++rank) {
    plans.push_back(SamplePlan(problem, sharding, rank).build());
  }
  return plans;
}

ParallelProblem sample_problem(int ranks) {
  constexpr std::int64_t kTokens = 24;
  Problem problem;
  problem.tokens_q = problem.tokens_k = kTokens;
  problem.heads_q = 4;
  problem.heads_k = 2;
  problem.head_dim = 8;
  problem.backward = true;
  return {.problem = problem,
          .mask = Mask::from_slices(kTokens, kTokens,
                                    {{0, kTokens, 0, kTokens, MaskSliceType::causal}}),
          .lengths = {},
          .ranks = ranks,
          .shard = ShardKind::zigzag};
}

}  // namespace longca::testing
