#include <utility>

#include "mask/mask_slice.h"
#include "parallel/plan/mask_heads.h"
#include "parallel/schemes/build/plan_parts.h"

namespace longca {
namespace {

/// Fewest query heads of a call, where a chunk is halved.
constexpr std::int64_t kMinQueryHeads = 4;

/// Heads of a chunk that are computed in one call.
struct CallHeads {
  Range q;
  Range kv;
};

Region with_heads(Region region, Range heads) {
  region.heads = {region.heads.begin + heads.begin, region.heads.begin + heads.end};
  return region;
}

/// Gradients, with keys that travel while others are computed on. The sums of the last turn would
/// travel home while nothing is computed, so half of the own turn's heads wait until then: half of
/// the chunks, or of the one chunk's heads. Where rows are divided (JointSplit), some of those that
/// need own keys only wait in their place.
class BackwardPass {
 public:
  explicit BackwardPass(PlanParts& parts);
  void write();

 private:
  bool turns_follow() const { return parts_.context->turns() > 1; }
  /// A chunk whose own turn comes last.
  bool is_late(int chunk) const {
    return turns_follow() && parts_.chunks() > 1 && 2 * chunk >= parts_.chunks();
  }
  bool last_of_group(int chunk) const {
    return chunk + 1 == parts_.chunks() || parts_.group_of(chunk + 1) != parts_.group_of(chunk);
  }
  const JointSplit* split() const { return parts_.context->joint_split(); }
  CallHeads all_heads(int chunk) const;
  Region& dq(int chunk) { return dq_[static_cast<std::size_t>(chunk)]; }
  Coverage& reached(int chunk) { return reached_[static_cast<std::size_t>(chunk)]; }

  GradientTarget& target(int turn, const Work& work, int group) {
    return turn == 0 ? own_keys_[static_cast<std::size_t>(group)]
                     : parts_.context->target(turn, work.block, group);
  }
  void compute(int turn, int chunk, bool late = false);
  void compute_with_keys_alone(const Work& work, int chunk, int step);
  void compute_late();
  void clear_late_half(const Work& work, const KeyPair& into, bool first_dq, bool first_dkv);
  void call(const Work& work, int turn, int chunk, const CallHeads& heads, const KeyPair& into,
            bool first_dq, bool first_dkv, int step);
  void clear_unseen_keys(int turn, int group);
  void finish_queries(int chunk, int step);
  void finish_keys(int group, const std::vector<LateSum>& sums, int step);
  void total_keys(TensorRole role, int group, const std::vector<LateSum>& sums, int step);

  PlanParts& parts_;
  /// All gradients of a plan, or none, so that no call has accumulators of two types.
  bool float32_;
  std::vector<Region> dq_;
  std::vector<Coverage> reached_;
  std::vector<GradientTarget> own_keys_;
  /// Whose gradients were written at their end result.
  Coverage keys_alone_;
  /// Of the only chunk; the same where it is not halved.
  CallHeads early_;
  CallHeads late_;
  bool halved_ = false;
};

BackwardPass::BackwardPass(PlanParts& parts)
    : parts_(parts),
      float32_(parts.grid.cp_ranks() > 1 || parts.layout.replicas() > 1 ||
               parts.chunks() > parts.groups()) {
  const CallHeads heads = all_heads(0);
  early_ = late_ = heads;
  halved_ = turns_follow() && split() == nullptr && parts.chunks() == 1 &&
            heads.q.size() >= 2 * kMinQueryHeads;
  if (!halved_) return;
  const std::int64_t group_size = heads.q.size() / heads.kv.size();
  const std::int64_t kv = heads.kv.size() / 2;
  const std::int64_t q = kv > 0 ? kv * group_size : heads.q.size() / 2;
  early_.q.end = late_.q.begin = q;
  if (kv > 0) early_.kv.end = late_.kv.begin = kv;
}

CallHeads BackwardPass::all_heads(int chunk) const {
  const HeadChunk& layout = parts_.layout.chunks()[static_cast<std::size_t>(chunk)];
  const Range kv = parts_.layout.groups()[static_cast<std::size_t>(layout.group)];
  return {{0, layout.q.size()}, {0, kv.size()}};
}

void BackwardPass::write() {
  using enum TensorRole;
  parts_.begin_backward();
  for (int chunk = 0; chunk < parts_.chunks(); ++chunk) {
    const HeadPart part[] = {{dout, chunk}};
    parts_.heads.bring_in(part, 0);
    dq_.push_back(parts_.result({TensorRole::dq, chunk}, float32_ && split() == nullptr));
  }
  reached_.resize(dq_.size());
  std::vector<KeyPair> own_keys;
  for (int group = 0; group < parts_.groups(); ++group) {
    own_keys.push_back(
        {parts_.result({dk, group}, float32_), parts_.result({dv, group}, float32_)});
    own_keys_.push_back({own_keys.back()});
  }
  ContextExchange& context = *parts_.context;
  context.begin_gradients(std::move(own_keys));
  for (int turn = 0; turn < context.turns(); ++turn) {
    context.fetch(turn);
    context.before_gradients(turn);
    for (int chunk = 0; chunk < parts_.chunks(); ++chunk) {
      if (turn > 0 || !is_late(chunk)) compute(turn, chunk);
      if (last_of_group(chunk)) clear_unseen_keys(turn, parts_.group_of(chunk));
      const bool is_last = turn + 1 == context.turns();
      const bool more_comes = is_late(chunk) || halved_ || split() != nullptr;
      if (is_last && !more_comes) finish_queries(chunk, turn);
      if (!turns_follow() && last_of_group(chunk)) finish_keys(parts_.group_of(chunk), {}, turn);
    }
    context.after_gradients(turn);
  }
  const LateSums sums = context.finish_gradients([this] { compute_late(); });
  for (int group = 0; turns_follow() && group < parts_.groups(); ++group) {
    finish_keys(group, sums[static_cast<std::size_t>(group)], context.turns());
  }
  for (const TensorRole role : {TensorRole::dq, dk, dv}) parts_.heads.place(role);
}

void BackwardPass::compute(int turn, int chunk, bool late) {
  const int step = late ? parts_.context->turns() : turn;
  for (const Work& work : parts_.work(turn, chunk)) {
    if (work.late != late) continue;
    if (work.has_keys_alone) {
      compute_with_keys_alone(work, chunk, step);
      continue;
    }
    const Region queries[] = {dq(chunk)};
    const bool first_dq = begins(parts_.writer, reached(chunk), work.rows, queries, step);
    GradientTarget& into = target(turn, work, parts_.group_of(chunk));
    const Region keys[] = {into.into.k, into.into.v};
    const bool first_dkv = begins(parts_.writer, into.coverage, work.keys, keys, step);
    const bool is_half = turn == 0 && halved_;
    call(work, turn, chunk, is_half ? early_ : all_heads(chunk), into.into, first_dq, first_dkv,
         step);
    if (is_half) clear_late_half(work, into.into, first_dq, first_dkv);
  }
}

/// No float32 sums of keys that nobody else adds to.
void BackwardPass::compute_with_keys_alone(const Work& work, int chunk, int step) {
  using enum TensorRole;
  const int group = parts_.group_of(chunk);
  reached(chunk).add(work.rows);
  keys_alone_.add(work.keys);
  call(work, 0, chunk, all_heads(chunk),
       {parts_.result({dk, group}, false), parts_.result({dv, group}, false)}, true, true, step);
}

/// What other turns add to before the late half comes.
void BackwardPass::clear_late_half(const Work& work, const KeyPair& into, bool first_dq,
                                   bool first_dkv) {
  if (first_dq) parts_.writer.add(Clear{with_heads(with_rows(dq(0), work.rows), late_.q)}, 0);
  if (!first_dkv || late_.kv == early_.kv) return;
  for (const Region& keys : {into.k, into.v}) {
    parts_.writer.add(Clear{with_heads(with_rows(keys, work.keys), late_.kv)}, 0);
  }
}

void BackwardPass::compute_late() {
  const int step = parts_.context->turns();
  for (int chunk = 0; chunk < parts_.chunks(); ++chunk) {
    if (split() != nullptr) {
      compute(0, chunk, true);
      finish_queries(chunk, step);
      continue;
    }
    if (!is_late(chunk) && !halved_) continue;
    for (const Work& work : parts_.work(0, chunk)) {
      const Region queries[] = {dq(chunk)};
      const bool first_dq = begins(parts_.writer, reached(chunk), work.rows, queries, step);
      const KeyPair& into = own_keys_[static_cast<std::size_t>(parts_.group_of(chunk))].into;
      call(work, 0, chunk, halved_ ? late_ : all_heads(chunk), into, first_dq, false, step);
    }
    finish_queries(chunk, step);
  }
}

void BackwardPass::call(const Work& work, int turn, int chunk, const CallHeads& heads,
                        const KeyPair& into, bool first_dq, bool first_dkv, int step) {
  const auto rows_of = [&](TensorRole role) {
    return with_heads(with_rows(parts_.heads.held({role, chunk}), work.rows), heads.q);
  };
  const auto keys_of = [&](const Region& keys) {
    return with_heads(with_rows(keys, work.keys), heads.kv);
  };
  const KeyPair keys = parts_.context->keys(turn, work.block, parts_.group_of(chunk));
  int mask = work.mask;
  const std::int64_t chunk_heads = all_heads(chunk).q.size();
  if (parts_.problem.mask.blocks() != nullptr && heads.q.size() < chunk_heads) {
    mask = parts_.writer.add_mask(
        heads_of(parts_.writer.mask(work.mask), static_cast<int>(heads.q.begin),
                 static_cast<int>(heads.q.size()), static_cast<int>(chunk_heads)));
  }
  parts_.writer.add(
      AttendBackward{rows_of(TensorRole::dout), rows_of(TensorRole::q), keys_of(keys.k),
                     keys_of(keys.v), rows_of(TensorRole::o), rows_of(TensorRole::lse),
                     with_heads(with_rows(dq(chunk), work.rows), heads.q), keys_of(into.k),
                     keys_of(into.v), mask, first_dq, first_dkv},
      step);
}

void BackwardPass::clear_unseen_keys(int turn, int group) {
  if (turn == 0) {
    // With rows divided, nothing is added to sums that were not written.
    const GradientTarget& own = own_keys_[static_cast<std::size_t>(group)];
    const Region keys[] = {own.into.k, own.into.v};
    if (split() == nullptr) clear_gaps(parts_.writer, own.coverage, keys, turn);
    return;
  }
  for (int block = 0; block < parts_.context->blocks(turn); ++block) {
    const GradientTarget& target = parts_.context->target(turn, block, group);
    const Region keys[] = {target.into.k, target.into.v};
    if (target.complete) clear_gaps(parts_.writer, target.coverage, keys, turn);
  }
}

void BackwardPass::finish_queries(int chunk, int step) {
  const Region queries[] = {dq(chunk)};
  clear_gaps(parts_.writer, reached(chunk), queries, step);
  const HeadPart part[] = {{TensorRole::dq, chunk}};
  const Region rounded = parts_.result(part[0], false);
  if (dq(chunk).buffer != rounded.buffer) parts_.writer.add(Convert{dq(chunk), rounded}, step);
  parts_.heads.send_out(part, step);
}

void BackwardPass::finish_keys(int group, const std::vector<LateSum>& sums, int step) {
  using enum TensorRole;
  const KeyPair& own = own_keys_[static_cast<std::size_t>(group)].into;
  if (parts_.layout.replicas() > 1) {
    for (const LateSum& sum : sums) {
      parts_.writer.add(Add{sum.from.k, with_rows(own.k, sum.rows)}, step);
      parts_.writer.add(Add{sum.from.v, with_rows(own.v, sum.rows)}, step);
    }
    const std::pair<TensorRole, Region> partials[] = {{dk, own.k}, {dv, own.v}};
    parts_.heads.add_up(partials, group, step);
    return;
  }
  const HeadPart rounded[] = {{dk, group}, {dv, group}};
  if (float32_) {
    for (const HeadPart& part : rounded) total_keys(part.role, group, sums, step);
  }
  parts_.heads.send_out(rounded, step);
}

/// What was summed here and what came late, added and rounded in one pass.
void BackwardPass::total_keys(TensorRole role, int group, const std::vector<LateSum>& sums,
                              int step) {
  const GradientTarget& own = own_keys_[static_cast<std::size_t>(group)];
  const auto of_role = [&](const KeyPair& pair) -> const Region& {
    return role == TensorRole::dk ? pair.k : pair.v;
  };
  const Region result = parts_.result({role, group}, false);
  if (sums.empty() && split() == nullptr) {
    parts_.writer.add(Convert{of_role(own.into), result}, step);
    return;
  }
  for (const Range rows : keys_alone_.gaps({0, result.tokens.size()})) {
    Total total{{}, with_rows(result, rows)};
    const auto take = [&](const Region& from, Range of_keys) {
      const Range both = intersect(rows, of_keys);
      if (both.empty()) return;
      const Range part = {both.begin - of_keys.begin, both.end - of_keys.begin};
      total.parts.push_back({with_rows(from, part), both.begin - rows.begin});
    };
    if (split() == nullptr) {
      take(with_rows(of_role(own.into), rows), rows);
    } else {
      for (const Range written : own.coverage.rows()) {
        take(with_rows(of_role(own.into), written), written);
      }
    }
    for (const LateSum& sum : sums) take(of_role(sum.from), sum.rows);
    parts_.writer.add(std::move(total), step);
  }
}

}  // namespace

void write_backward(PlanParts& parts) {
  BackwardPass(parts).write();
}

}  // namespace longca
