#include <utility>

#include "cost/kernel_cost.h"
#include "mask/mask_slice.h"
#include "parallel/plan/mask_heads.h"
#include "parallel/schemes/build/plan_parts.h"

namespace longca {
namespace {

/// A single chunk is halved only if each half has at least this many query heads.
constexpr std::int64_t kMinQueryHeads = 4;

/// Heads of one call, numbered inside its chunk and its KV group.
struct CallHeads {
  Range q;
  Range kv;
};

Region with_heads(Region region, Range heads) {
  region.heads = {region.heads.begin + heads.begin, region.heads.begin + heads.end};
  return region;
}

/// Writes the backward pass. The sums of the last step would return to their owners while nothing
/// is computed, so half of step 0 is deferred to hide them ("late"): half of the chunks, or half
/// of the heads of a single chunk; with a JointSplit, rows that see own keys only.
class BackwardWriter {
 public:
  explicit BackwardWriter(PlanParts& parts);
  void write();

 private:
  bool has_more_steps() const { return parts_.context->steps() > 1; }
  /// Whether step 0 of a chunk is computed last.
  bool is_late(int chunk) const {
    return has_more_steps() && parts_.chunks() > 1 && 2 * chunk >= parts_.chunks();
  }
  bool last_of_group(int chunk) const {
    return chunk + 1 == parts_.chunks() || parts_.group_of(chunk + 1) != parts_.group_of(chunk);
  }
  const JointSplit* split() const { return parts_.context->joint_split(); }
  CallHeads all_heads(int chunk) const;
  Region& dq(int chunk) { return dq_[static_cast<std::size_t>(chunk)]; }
  Coverage& reached(int chunk) { return reached_[static_cast<std::size_t>(chunk)]; }

  GradientTarget& target(int step, const Work& work, int group) {
    return step == 0 ? own_keys_[static_cast<std::size_t>(group)]
                     : parts_.context->target(step, work.block, group);
  }
  void compute(int keys_step, int chunk, bool late = false);
  void compute_with_keys_alone(const Work& work, int chunk, int step);
  void compute_late();
  void clear_late_half(const Work& work, const KeyPair& into, bool first_dq, bool first_dkv);
  bool begins_late_keys(const Work& work, int chunk, int step);
  void call(const Work& work, int keys_step, int chunk, const CallHeads& heads, const KeyPair& into,
            bool first_dq, bool first_dkv, int step);
  void clear_unseen_keys(int step, int chunk);
  void clear_own_gaps(int group, int step);
  void finish_queries(int chunk, int step);
  void add_sink_gradients(int chunk, int step);
  void finish_keys(int group, const std::vector<LateSum>& sums, int step);
  std::vector<Range> complete_keys(std::int64_t keys, int group,
                                   const std::vector<LateSum>& sums) const;
  void total_keys(TensorRole role, int group, Range rows, const std::vector<LateSum>& sums,
                  int step);

  PlanParts& parts_;
  /// Whether gradients are summed in float32: all of a plan or none, so that no call has
  /// accumulators of two dtypes.
  bool float32_;
  std::vector<Region> dq_;                ///< per chunk: the result, or a float32 sum
  std::vector<Coverage> reached_;         ///< per chunk: rows of dq_ that were written
  std::vector<GradientTarget> own_keys_;  ///< per KV group: sums of the own keys' gradients
  /// Own keys whose gradients were written directly to the result.
  Coverage keys_alone_;
  /// The two halves of a single chunk; equal where it is not halved.
  CallHeads early_;
  CallHeads late_;
  bool halved_ = false;
  Coverage late_keys_;  ///< own keys whose late half was written, if nothing else adds to it
  bool has_sink_gradients_ = false;  ///< of some chunk
};

BackwardWriter::BackwardWriter(PlanParts& parts)
    : parts_(parts),
      float32_(parts.grid.cp_ranks() > 1 || parts.layout.replicas() > 1 ||
               parts.chunks() > parts.groups()) {
  const CallHeads heads = all_heads(0);
  early_ = late_ = heads;
  halved_ = has_more_steps() && split() == nullptr && parts.chunks() == 1 &&
            heads.q.size() >= 2 * kMinQueryHeads;
  if (!halved_) return;
  const std::int64_t group_size = heads.q.size() / heads.kv.size();
  const std::int64_t kv = heads.kv.size() / 2;
  const std::int64_t q = kv > 0 ? kv * group_size : heads.q.size() / 2;
  early_.q.end = late_.q.begin = q;
  if (kv > 0) early_.kv.end = late_.kv.begin = kv;
}

CallHeads BackwardWriter::all_heads(int chunk) const {
  const HeadChunk& layout = parts_.layout.chunks()[static_cast<std::size_t>(chunk)];
  const Range kv = parts_.layout.groups()[static_cast<std::size_t>(layout.group)];
  return {{0, layout.q.size()}, {0, kv.size()}};
}

void BackwardWriter::write() {
  using enum TensorRole;
  parts_.begin_backward();
  std::vector<std::vector<HeadPart>> exchanges;
  for (int chunk = 0; chunk < parts_.chunks(); ++chunk) {
    exchanges.emplace_back(1, HeadPart{dout, chunk});
  }
  parts_.heads.bring_in(exchanges, 0);
  for (int chunk = 0; chunk < parts_.chunks(); ++chunk) {
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
  for (int step = 0; step < context.steps(); ++step) {
    context.fetch(step);
    context.before_gradients(step);
    for (int chunk = 0; chunk < parts_.chunks(); ++chunk) {
      if (step > 0 || !is_late(chunk)) compute(step, chunk);
      if (last_of_group(chunk)) clear_unseen_keys(step, chunk);
      const bool is_last = step + 1 == context.steps();
      const bool more_comes = is_late(chunk) || halved_ || split() != nullptr;
      if (is_last && !more_comes) finish_queries(chunk, step);
      if (!has_more_steps() && last_of_group(chunk)) finish_keys(parts_.group_of(chunk), {}, step);
    }
    context.after_gradients(step);
  }
  const LateSums sums = context.finish_gradients([this] { compute_late(); });
  for (int group = 0; has_more_steps() && group < parts_.groups(); ++group) {
    finish_keys(group, sums[static_cast<std::size_t>(group)], context.steps());
  }
  parts_.heads.end_pass();
  for (const TensorRole role : {TensorRole::dq, dk, dv}) parts_.heads.place(role);
}

void BackwardWriter::compute(int keys_step, int chunk, bool late) {
  const int step = late ? parts_.context->steps() : keys_step;
  for (const Work& work : parts_.work(keys_step, chunk)) {
    if (work.late != late) continue;
    if (work.has_keys_alone) {
      compute_with_keys_alone(work, chunk, step);
      continue;
    }
    const Region queries[] = {dq(chunk)};
    const bool first_dq = begins(parts_.writer, reached(chunk), work.rows, queries, step);
    GradientTarget& into = target(keys_step, work, parts_.group_of(chunk));
    const Region keys[] = {into.into.k, into.into.v};
    const bool first_dkv = begins(parts_.writer, into.coverage, work.keys, keys, step);
    const bool is_half = keys_step == 0 && halved_;
    call(work, keys_step, chunk, is_half ? early_ : all_heads(chunk), into.into, first_dq,
         first_dkv, step);
    if (is_half) clear_late_half(work, into.into, first_dq, first_dkv);
  }
}

/// Writes the gradients to the result: keys to which nothing else adds need no float32 sums.
void BackwardWriter::compute_with_keys_alone(const Work& work, int chunk, int step) {
  using enum TensorRole;
  const int group = parts_.group_of(chunk);
  reached(chunk).add(work.rows);
  keys_alone_.add(work.keys);
  call(work, 0, chunk, all_heads(chunk),
       {parts_.result({dk, group}, false), parts_.result({dv, group}, false)}, true, true, step);
}

/// Clears the late half of what the early half overwrote, if other steps add to it meanwhile: to dq
/// always.
void BackwardWriter::clear_late_half(const Work& work, const KeyPair& into, bool first_dq,
                                     bool first_dkv) {
  if (first_dq) parts_.writer.add(Clear{with_heads(with_rows(dq(0), work.rows), late_.q)}, 0);
  if (!first_dkv || late_.kv == early_.kv || !parts_.context->adds_to_own_keys()) return;
  for (const Region& keys : {into.k, into.v}) {
    parts_.writer.add(Clear{with_heads(with_rows(keys, work.keys), late_.kv)}, 0);
  }
}

/// Whether a late call is the first to write the gradients of its own keys. Clears those that only
/// some calls before it have written.
bool BackwardWriter::begins_late_keys(const Work& work, int chunk, int step) {
  if (parts_.context->adds_to_own_keys()) return false;
  GradientTarget& own = own_keys_[static_cast<std::size_t>(parts_.group_of(chunk))];
  if (!halved_) {
    const Region keys[] = {own.into.k, own.into.v};
    return begins(parts_.writer, own.coverage, work.keys, keys, step);
  }
  if (late_.kv == early_.kv) return false;
  const Region keys[] = {with_heads(own.into.k, late_.kv), with_heads(own.into.v, late_.kv)};
  return begins(parts_.writer, late_keys_, work.keys, keys, step);
}

void BackwardWriter::compute_late() {
  const int step = parts_.context->steps();
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
      const bool first_dkv = begins_late_keys(work, chunk, step);
      const KeyPair& into = own_keys_[static_cast<std::size_t>(parts_.group_of(chunk))].into;
      call(work, 0, chunk, halved_ ? late_ : all_heads(chunk), into, first_dq, first_dkv, step);
    }
    if (last_of_group(chunk)) clear_own_gaps(parts_.group_of(chunk), step);
    finish_queries(chunk, step);
  }
}

void BackwardWriter::call(const Work& work, int keys_step, int chunk, const CallHeads& heads,
                          const KeyPair& into, bool first_dq, bool first_dkv, int step) {
  const auto rows_of = [&](TensorRole role) {
    return with_heads(with_rows(parts_.heads.held({role, chunk}), work.rows), heads.q);
  };
  const auto keys_of = [&](const Region& keys) {
    return with_heads(with_rows(keys, work.keys), heads.kv);
  };
  const KeyPair keys = parts_.context->keys(keys_step, work.block, parts_.group_of(chunk));
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

/// Behind the last chunk of a group, which is late if any of the group's is.
void BackwardWriter::clear_unseen_keys(int step, int chunk) {
  const int group = parts_.group_of(chunk);
  if (step == 0) {
    // Late calls write what they see, unless other steps add to it meanwhile.
    if (!is_late(chunk) || parts_.context->adds_to_own_keys()) clear_own_gaps(group, step);
    return;
  }
  for (int block = 0; block < parts_.context->blocks(step); ++block) {
    const GradientTarget& target = parts_.context->target(step, block, group);
    const Region keys[] = {target.into.k, target.into.v};
    if (target.complete) clear_gaps(parts_.writer, target.coverage, keys, step);
  }
}

/// With a JointSplit, total_keys reads only sums that were written.
void BackwardWriter::clear_own_gaps(int group, int step) {
  if (split() != nullptr) return;
  GradientTarget& own = own_keys_[static_cast<std::size_t>(group)];
  const Region keys[] = {own.into.k, own.into.v};
  clear_gaps(parts_.writer, own.coverage, keys, step);
  own.coverage.add({0, own.into.k.tokens.size()});
}

void BackwardWriter::finish_queries(int chunk, int step) {
  const Region queries[] = {dq(chunk)};
  clear_gaps(parts_.writer, reached(chunk), queries, step);
  const HeadPart part[] = {{TensorRole::dq, chunk}};
  const Region rounded = parts_.result(part[0], false);
  if (dq(chunk).buffer != rounded.buffer) parts_.writer.add(Convert{dq(chunk), rounded}, step);
  parts_.heads.send_out(part, step);
  if (parts_.problem.problem.sink) add_sink_gradients(chunk, step);
}

void BackwardWriter::add_sink_gradients(int chunk, int step) {
  const auto rows_of = [&](TensorRole role) { return parts_.result({role, chunk}, false); };
  parts_.writer.add(
      SinkGradients{rows_of(TensorRole::dout), rows_of(TensorRole::o), rows_of(TensorRole::lse),
                    parts_.first_head(chunk), !has_sink_gradients_},
      step);
  has_sink_gradients_ = true;
}

void BackwardWriter::finish_keys(int group, const std::vector<LateSum>& sums, int step) {
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
  const Range all{0, own.k.tokens.size()};
  if (float32_ && sums.empty() && split() == nullptr) {
    parts_.writer.add(Convert{own.k, parts_.result(rounded[0], false)}, step);
    parts_.writer.add(Convert{own.v, parts_.result(rounded[1], false)}, step);
  } else if (float32_) {
    Coverage done = keys_alone_;
    for (const Range rows : complete_keys(all.size(), group, sums)) {
      for (const HeadPart& part : rounded) total_keys(part.role, group, rows, {}, step);
      done.add(rows);
    }
    for (const Range rows : done.gaps(all)) {
      for (const HeadPart& part : rounded) total_keys(part.role, group, rows, sums, step);
    }
  }
  parts_.heads.send_out(rounded, step);
}

/// The own keys, out of `keys`, whose sums are complete before `sums` arrive: rounded meanwhile.
/// None if that takes less than the launch which it costs.
std::vector<Range> BackwardWriter::complete_keys(std::int64_t keys, int group,
                                                 const std::vector<LateSum>& sums) const {
  if (sums.empty()) return {};
  Coverage others = keys_alone_;
  for (const LateSum& sum : sums) others.add(sum.rows);
  std::vector<Range> complete = others.gaps({0, keys});
  const auto& layout = parts_.layout.groups()[static_cast<std::size_t>(group)];
  cost::HeadShape shape = parts_.problem.shape();
  shape.heads_k = static_cast<int>(layout.size());
  const cost::Platform& platform = *parts_.problem.platform;
  const double bytes =
      (shape.key_sum_bytes() + shape.key_bytes()) * static_cast<double>(total_size(complete));
  if (cost::memory_seconds(platform, bytes) <= platform.memory.seconds_per_copy) return {};
  return complete;
}

/// Adds this rank's sums and those that arrived last, and rounds, in one op.
void BackwardWriter::total_keys(TensorRole role, int group, Range rows,
                                const std::vector<LateSum>& sums, int step) {
  const GradientTarget& own = own_keys_[static_cast<std::size_t>(group)];
  const auto of_role = [&](const KeyPair& pair) -> const Region& {
    return role == TensorRole::dk ? pair.k : pair.v;
  };
  const Region result = parts_.result({role, group}, false);
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

}  // namespace

void write_backward(PlanParts& parts) {
  BackwardWriter(parts).write();
}

}  // namespace longca
