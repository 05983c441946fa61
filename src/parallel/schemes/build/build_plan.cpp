#include "parallel/schemes/build/build_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "core/error.h"
#include "parallel/plan/mask_heads.h"
#include "parallel/schemes/build/cast.h"
#include "parallel/schemes/build/cutter.h"
#include "parallel/schemes/build/ring.h"

namespace longca {
namespace {

/// A piece of work of one chunk of heads, with the number of its mask in the plan.
struct Work {
  int block = 0;
  Range rows;
  Range keys;
  int mask = 0;
};

Region with_rows(Region region, Range rows) {
  region.tokens = {region.tokens.begin + rows.begin, region.tokens.begin + rows.end};
  return region;
}

class Builder {
 public:
  Builder(const ParallelProblem& problem, const Composition& composition, int rank)
      : problem_(problem),
        grid_(problem, composition.shape),
        layout_(problem.problem.heads_q, problem.problem.heads_k, composition.shape.head_ways),
        shard_(grid_.position_shard(grid_.position(rank))),
        writer_(rank, problem.ranks),
        heads_(problem, grid_, layout_, rank, writer_) {
    make_context(composition, rank);
    cut(rank);
  }

  RankPlan build() {
    forward();
    if (problem_.problem.backward) backward();
    add_notes();
    return writer_.take();
  }

 private:
  int chunks() const { return static_cast<int>(layout_.chunks().size()); }
  int groups() const { return static_cast<int>(layout_.groups().size()); }
  int group_of(int chunk) const { return layout_.chunks()[static_cast<std::size_t>(chunk)].group; }
  bool first_of_group(int chunk) const {
    return chunk == 0 || group_of(chunk - 1) != group_of(chunk);
  }
  bool last_of_group(int chunk) const {
    return chunk + 1 == chunks() || group_of(chunk + 1) != group_of(chunk);
  }
  const std::vector<Work>& work(int turn, int chunk) const {
    const auto& of_turn = work_[static_cast<std::size_t>(turn)];
    return of_turn[of_turn.size() == 1 ? 0 : static_cast<std::size_t>(chunk)];
  }

  void make_context(const Composition& composition, int rank);
  void cut(int rank);
  bool meets_again(int chunk) const;
  void forward();
  void attend(int turn, int chunk, const Region& o, Coverage& coverage);
  void finish_o(int turn, int chunk, const Region& o, const Coverage& coverage);
  void backward();
  void attend_backward(int turn, int chunk, const Region& dq, Coverage& coverage);
  void clear_unseen_keys(int turn, int group);
  void finish_dq(int turn, int chunk, const Region& dq, const Coverage& coverage);
  void finish_keys(int turn, int group);
  /// The rows of the position's tokens in a buffer of this part: its own, or a float32 one.
  Region result(HeadPart part, bool float32);
  void add_notes();

  const ParallelProblem& problem_;
  Grid grid_;
  HeadLayout layout_;
  Shard shard_;
  PlanWriter writer_;
  HeadExchange heads_;
  std::unique_ptr<ContextExchange> context_;
  /// Per turn, and per chunk where masks differ by head.
  std::vector<std::vector<std::vector<Work>>> work_;
  bool float32_gradients_ = false;
  std::vector<KeyPair> own_gradients_;
};

void Builder::make_context(const Composition& composition, int rank) {
  if (composition.context == ContextKind::ring) {
    const int window = composition.window > 0 ? composition.window : grid_.positions();
    context_ = std::make_unique<Ring>(grid_, rank, window, layout_, heads_, writer_);
    return;
  }
  Cast::Options options;
  options.by_owner = problem_.shard == ShardKind::document_zigzag;
  if (composition.context == ContextKind::group_cast) {
    options.seen.emplace(problem_.mask);
    options.stages = stages_by_cost(problem_, grid_, *options.seen);
  } else {
    options.stages = doubling_stages(grid_.positions());
  }
  context_ = std::make_unique<Cast>(grid_, rank, options, layout_, heads_, writer_);
}

void Builder::cut(int rank) {
  std::vector<Cutter> cutters;
  const bool per_head = problem_.mask.blocks() != nullptr;
  for (int chunk = 0; chunk < (per_head ? chunks() : 1); ++chunk) {
    const Range heads =
        layout_.q_heads(grid_.member(rank), layout_.chunks()[static_cast<std::size_t>(chunk)]);
    cutters.emplace_back(heads_of(problem_.mask, static_cast<int>(heads.begin),
                                  static_cast<int>(heads.size()), problem_.problem.heads_q),
                         shard_.ranges);
  }
  for (int turn = 0; turn < context_->turns(); ++turn) {
    auto& of_turn = work_.emplace_back(cutters.size());
    for (int block = 0; block < context_->blocks(turn); ++block) {
      const std::vector<Range> keys = context_->ranges(turn, block);
      for (std::size_t i = 0; i < cutters.size(); ++i) {
        auto piece = cutters[i].cut(keys);
        if (!piece) continue;
        of_turn[i].push_back(
            {block, piece->rows, piece->keys, writer_.add_mask(std::move(piece->mask))});
      }
    }
  }
}

/// Whether a row of the chunk has more than one Attend.
bool Builder::meets_again(int chunk) const {
  Coverage coverage;
  for (int turn = 0; turn < context_->turns(); ++turn) {
    for (const Work& piece : work(turn, chunk)) {
      if (coverage.add(piece.rows) != std::vector<Range>{piece.rows}) return true;
    }
  }
  return false;
}

Region Builder::result(HeadPart part, bool float32) {
  Region region = heads_.held(part);
  region.tokens = {0, shard_.tokens};
  if (!float32) return region;
  const int buffer = writer_.add_buffer(
      {fmt::format("sum of {}, chunk {}", to_string(part.role), part.index), part.role,
       shard_.tokens, static_cast<int>(region.heads.size()), true, false, false});
  return {buffer, region.tokens, {0, region.heads.size()}};
}

void Builder::forward() {
  using enum TensorRole;
  for (int chunk = 0; chunk < chunks(); ++chunk) {
    std::vector<HeadPart> parts = {{q, chunk}};
    const int group = group_of(chunk);
    if (first_of_group(chunk)) parts.insert(parts.end(), {{k, group}, {v, group}});
    heads_.bring_in(parts, 0);
  }
  std::vector<Region> outputs;
  for (int chunk = 0; chunk < chunks(); ++chunk) {
    outputs.push_back(result({o, chunk}, meets_again(chunk)));
  }
  std::vector<Coverage> coverage(outputs.size());
  for (int turn = 0; turn < context_->turns(); ++turn) {
    context_->fetch(turn);
    for (int chunk = 0; chunk < chunks(); ++chunk) {
      const auto i = static_cast<std::size_t>(chunk);
      attend(turn, chunk, outputs[i], coverage[i]);
      if (turn + 1 == context_->turns()) finish_o(turn, chunk, outputs[i], coverage[i]);
    }
  }
  heads_.place(o);
  heads_.place(lse);
}

void Builder::attend(int turn, int chunk, const Region& o, Coverage& coverage) {
  const Region q = heads_.held({TensorRole::q, chunk});
  const Region lse = heads_.held({TensorRole::lse, chunk});
  for (const Work& piece : work(turn, chunk)) {
    const std::vector<Range> fresh = coverage.add(piece.rows);
    const bool first = fresh == std::vector<Range>{piece.rows};
    for (const Range rows : first ? std::vector<Range>{} : fresh) {
      writer_.add(Clear{with_rows(o, rows)}, turn);
      writer_.add(Clear{with_rows(lse, rows)}, turn);
    }
    const KeyPair keys = context_->keys(turn, piece.block, group_of(chunk));
    writer_.add(Attend{with_rows(q, piece.rows), with_rows(keys.k, piece.keys),
                       with_rows(keys.v, piece.keys), with_rows(o, piece.rows),
                       with_rows(lse, piece.rows), piece.mask, first},
                turn);
  }
}

void Builder::finish_o(int turn, int chunk, const Region& o, const Coverage& coverage) {
  const Region lse = heads_.held({TensorRole::lse, chunk});
  for (const Range rows : coverage.gaps(o.tokens)) {
    writer_.add(Clear{with_rows(o, rows)}, turn);
    writer_.add(Clear{with_rows(lse, rows)}, turn);
  }
  const Region rounded = result({TensorRole::o, chunk}, false);
  if (o.buffer != rounded.buffer) writer_.add(Convert{o, rounded}, turn);
  const HeadPart part[] = {{TensorRole::o, chunk}};
  heads_.send_out(part, turn);
}

void Builder::backward() {
  using enum TensorRole;
  writer_.begin_backward();
  for (int chunk = 0; chunk < chunks(); ++chunk) {
    const HeadPart part[] = {{dout, chunk}};
    heads_.bring_in(part, 0);
  }
  float32_gradients_ = grid_.positions() > 1 || layout_.replicas() > 1 || chunks() > groups();
  std::vector<Region> outputs;
  for (int chunk = 0; chunk < chunks(); ++chunk) {
    outputs.push_back(result({dq, chunk}, float32_gradients_));
  }
  for (int group = 0; group < groups(); ++group) {
    own_gradients_.push_back(
        {result({dk, group}, float32_gradients_), result({dv, group}, float32_gradients_)});
  }
  context_->begin_gradients(own_gradients_);
  std::vector<Coverage> coverage(outputs.size());
  for (int turn = 0; turn < context_->turns(); ++turn) {
    const bool is_last = turn + 1 == context_->turns();
    context_->fetch(turn);
    context_->before_gradients(turn);
    for (int chunk = 0; chunk < chunks(); ++chunk) {
      const auto i = static_cast<std::size_t>(chunk);
      attend_backward(turn, chunk, outputs[i], coverage[i]);
      if (last_of_group(chunk)) clear_unseen_keys(turn, group_of(chunk));
      if (is_last) finish_dq(turn, chunk, outputs[i], coverage[i]);
      if (context_->turns() == 1 && last_of_group(chunk)) finish_keys(turn, group_of(chunk));
    }
    context_->after_gradients(turn);
  }
  context_->finish_gradients();
  for (int group = 0; context_->turns() > 1 && group < groups(); ++group) {
    finish_keys(context_->turns(), group);
  }
  for (const TensorRole role : {dq, dk, dv}) heads_.place(role);
}

void Builder::attend_backward(int turn, int chunk, const Region& dq, Coverage& coverage) {
  const auto rows_of = [&](TensorRole role, Range rows) {
    return with_rows(heads_.held({role, chunk}), rows);
  };
  for (const Work& piece : work(turn, chunk)) {
    const std::vector<Range> fresh_rows = coverage.add(piece.rows);
    const bool first_dq = fresh_rows == std::vector<Range>{piece.rows};
    for (const Range rows : first_dq ? std::vector<Range>{} : fresh_rows) {
      writer_.add(Clear{with_rows(dq, rows)}, turn);
    }
    GradientTarget& target = context_->target(turn, piece.block, group_of(chunk));
    const std::vector<Range> fresh_keys = target.coverage.add(piece.keys);
    const bool first_dkv = fresh_keys == std::vector<Range>{piece.keys};
    for (const Range rows : first_dkv ? std::vector<Range>{} : fresh_keys) {
      writer_.add(Clear{with_rows(target.into.k, rows)}, turn);
      writer_.add(Clear{with_rows(target.into.v, rows)}, turn);
    }
    const KeyPair keys = context_->keys(turn, piece.block, group_of(chunk));
    writer_.add(
        AttendBackward{rows_of(TensorRole::dout, piece.rows), rows_of(TensorRole::q, piece.rows),
                       with_rows(keys.k, piece.keys), with_rows(keys.v, piece.keys),
                       rows_of(TensorRole::o, piece.rows), rows_of(TensorRole::lse, piece.rows),
                       with_rows(dq, piece.rows), with_rows(target.into.k, piece.keys),
                       with_rows(target.into.v, piece.keys), piece.mask, first_dq, first_dkv},
        turn);
  }
}

void Builder::clear_unseen_keys(int turn, int group) {
  for (int block = 0; block < context_->blocks(turn); ++block) {
    const GradientTarget& target = context_->target(turn, block, group);
    if (!target.complete) continue;
    for (const Range rows : target.coverage.gaps({0, target.into.k.tokens.size()})) {
      writer_.add(Clear{with_rows(target.into.k, rows)}, turn);
      writer_.add(Clear{with_rows(target.into.v, rows)}, turn);
    }
  }
}

void Builder::finish_dq(int turn, int chunk, const Region& dq, const Coverage& coverage) {
  for (const Range rows : coverage.gaps(dq.tokens)) {
    writer_.add(Clear{with_rows(dq, rows)}, turn);
  }
  const HeadPart part[] = {{TensorRole::dq, chunk}};
  if (float32_gradients_) writer_.add(Convert{dq, result(part[0], false)}, turn);
  heads_.send_out(part, turn);
}

void Builder::finish_keys(int turn, int group) {
  using enum TensorRole;
  const KeyPair& own = own_gradients_[static_cast<std::size_t>(group)];
  if (layout_.replicas() > 1) {
    const std::pair<TensorRole, Region> partials[] = {{dk, own.k}, {dv, own.v}};
    heads_.add_up(partials, group, turn);
    return;
  }
  const HeadPart parts[] = {{dk, group}, {dv, group}};
  if (float32_gradients_) {
    writer_.add(Convert{own.k, result(parts[0], false)}, turn);
    writer_.add(Convert{own.v, result(parts[1], false)}, turn);
  }
  heads_.send_out(parts, turn);
}

void Builder::add_notes() {
  if (layout_.replicas() > 1) {
    writer_.add_note(fmt::format("each KV head is held by {} ranks", layout_.replicas()));
  }
  if (chunks() > 1) writer_.add_note(fmt::format("heads travel in {} chunks", chunks()));
}

}  // namespace

RankPlan build_plan(const ParallelProblem& problem, const Composition& composition, int rank) {
  LONGCA_CHECK(rank >= 0 && rank < problem.ranks, "rank {} of {}", rank, problem.ranks);
  return Builder(problem, composition, rank).build();
}

}  // namespace longca
