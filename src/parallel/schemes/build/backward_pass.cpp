#include "parallel/plan/mask_heads.h"
#include "parallel/schemes/build/plan_parts.h"

namespace longca {
namespace {

/// Fewest query heads of a call, where a chunk is halved.
constexpr std::int64_t kLeastQueryHeads = 4;

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
/// the chunks, or of the one chunk's heads.
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
  CallHeads all_heads(int chunk) const;
  Region& dq(int chunk) { return dq_[static_cast<std::size_t>(chunk)]; }
  Coverage& reached(int chunk) { return reached_[static_cast<std::size_t>(chunk)]; }

  void compute(int turn, int chunk);
  void compute_late();
  void clear_late_half(const Work& work, const KeyPair& into, bool first_dq, bool first_dkv);
  void call(const Work& work, int turn, int chunk, const CallHeads& heads, const KeyPair& into,
            bool first_dq, bool first_dkv, int step);
  void clear_unseen_keys(int turn, int group);
  void finish_queries(int chunk, int step);
  void finish_keys(int group, int step);

  PlanParts& parts_;
  /// All gradients of a plan, or none, so that no call has accumulators of two types.
  bool float32_;
  std::vector<Region> dq_;
  std::vector<Coverage> reached_;
  std::vector<KeyPair> own_keys_;
  /// Of the only chunk; the same where it is not halved.
  CallHeads early_;
  CallHeads late_;
  bool halved_ = false;
};

BackwardPass::BackwardPass(PlanParts& parts)
    : parts_(parts),
      float32_(parts.grid.positions() > 1 || parts.layout.replicas() > 1 ||
               parts.chunks() > parts.groups()) {
  const CallHeads heads = all_heads(0);
  early_ = late_ = heads;
  halved_ = turns_follow() && parts.chunks() == 1 && heads.q.size() >= 2 * kLeastQueryHeads;
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
  parts_.writer.begin_backward();
  for (int chunk = 0; chunk < parts_.chunks(); ++chunk) {
    const HeadPart part[] = {{dout, chunk}};
    parts_.heads.bring_in(part, 0);
    dq_.push_back(parts_.result({TensorRole::dq, chunk}, float32_));
  }
  reached_.resize(dq_.size());
  for (int group = 0; group < parts_.groups(); ++group) {
    own_keys_.push_back(
        {parts_.result({dk, group}, float32_), parts_.result({dv, group}, float32_)});
  }
  ContextExchange& context = *parts_.context;
  context.begin_gradients(own_keys_);
  for (int turn = 0; turn < context.turns(); ++turn) {
    context.fetch(turn);
    context.before_gradients(turn);
    for (int chunk = 0; chunk < parts_.chunks(); ++chunk) {
      if (turn > 0 || !is_late(chunk)) compute(turn, chunk);
      if (last_of_group(chunk)) clear_unseen_keys(turn, parts_.group_of(chunk));
      const bool is_last = turn + 1 == context.turns();
      if (is_last && !is_late(chunk) && !halved_) finish_queries(chunk, turn);
      if (!turns_follow() && last_of_group(chunk)) finish_keys(parts_.group_of(chunk), turn);
    }
    context.after_gradients(turn);
  }
  context.finish_gradients([this] { compute_late(); });
  for (int group = 0; turns_follow() && group < parts_.groups(); ++group) {
    finish_keys(group, context.turns());
  }
  for (const TensorRole role : {TensorRole::dq, dk, dv}) parts_.heads.place(role);
}

void BackwardPass::compute(int turn, int chunk) {
  for (const Work& work : parts_.work(turn, chunk)) {
    const Region queries[] = {dq(chunk)};
    const bool first_dq = begins(parts_.writer, reached(chunk), work.rows, queries, turn);
    GradientTarget& target = parts_.context->target(turn, work.block, parts_.group_of(chunk));
    const Region keys[] = {target.into.k, target.into.v};
    const bool first_dkv = begins(parts_.writer, target.coverage, work.keys, keys, turn);
    const bool is_half = turn == 0 && halved_;
    call(work, turn, chunk, is_half ? early_ : all_heads(chunk), target.into, first_dq, first_dkv,
         turn);
    if (is_half) clear_late_half(work, target.into, first_dq, first_dkv);
  }
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
    if (!is_late(chunk) && !halved_) continue;
    for (const Work& work : parts_.work(0, chunk)) {
      const Region queries[] = {dq(chunk)};
      const bool first_dq = begins(parts_.writer, reached(chunk), work.rows, queries, step);
      const KeyPair& into = own_keys_[static_cast<std::size_t>(parts_.group_of(chunk))];
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
  if (float32_) parts_.writer.add(Convert{dq(chunk), parts_.result(part[0], false)}, step);
  parts_.heads.send_out(part, step);
}

void BackwardPass::finish_keys(int group, int step) {
  using enum TensorRole;
  const KeyPair& own = own_keys_[static_cast<std::size_t>(group)];
  if (parts_.layout.replicas() > 1) {
    const std::pair<TensorRole, Region> partials[] = {{dk, own.k}, {dv, own.v}};
    parts_.heads.add_up(partials, group, step);
    return;
  }
  const HeadPart rounded[] = {{dk, group}, {dv, group}};
  if (float32_) {
    parts_.writer.add(Convert{own.k, parts_.result(rounded[0], false)}, step);
    parts_.writer.add(Convert{own.v, parts_.result(rounded[1], false)}, step);
  }
  parts_.heads.send_out(rounded, step);
}

}  // namespace

void write_backward(PlanParts& parts) {
  BackwardPass(parts).write();
}

}  // namespace longca
