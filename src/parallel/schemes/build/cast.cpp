#include "parallel/schemes/build/cast.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "parallel/schemes/build/cast_layout.h"

namespace longca {
namespace {

void append(std::vector<Message>& messages, int peer, const KeyPair& all, Range rows) {
  if (rows.empty()) return;
  const KeyPair pair = rows_of_pair(all, rows);
  messages.insert(messages.end(), {{peer, pair.k}, {peer, pair.v}});
}

/// Rows that this rank sends in a stage, and whose sums come back.
std::int64_t rows_to(const CastStage& stage) {
  std::int64_t rows = 0;
  for (const Parcel& parcel : stage.to) {
    for (const Range run : parcel.runs) rows += run.size();
  }
  return rows;
}

}  // namespace

Cast::Cast(const Grid& grid, int rank, const Options& options, const ChooseSplit& choose_split,
           const HeadLayout& layout, HeadExchange& heads, PlanWriter& writer)
    : heads_(heads),
      writer_(writer),
      seen_only_(options.seen.has_value()),
      groups_(static_cast<int>(layout.groups().size())),
      shard_(grid.cp_rank_shard(grid.cp_rank(rank))),
      stages_(cast_layout(grid, rank, options, choose_split, split_)) {
  for (const CastStage& stage : stages_) {
    max_rows_ = std::max(max_rows_, stage.rows);
    max_arriving_ = std::max(max_arriving_, rows_to(stage));
  }
}

int Cast::blocks(int step) const {
  return step == 0 ? 1 : static_cast<int>(stage_of(step).blocks.size());
}

std::vector<Range> Cast::ranges(int step, int block) {
  if (step == 0) return shard_.ranges;
  return stage_of(step).blocks[static_cast<std::size_t>(block)].ranges;
}

std::vector<Range> Cast::shared_keys() const {
  std::vector<Range> rows;
  for (const CastStage& stage : stages_) {
    const Parcel own = needed_own_keys(stage);
    rows.insert(rows.end(), own.runs.begin(), own.runs.end());
    for (const Parcel& parcel : stage.to) {
      rows.insert(rows.end(), parcel.runs.begin(), parcel.runs.end());
    }
  }
  return rows;
}

KeyPair Cast::own_keys(int group) {
  return {heads_.held({TensorRole::k, group}), heads_.held({TensorRole::v, group})};
}

KeyPair Cast::buffer(BufferKind kind, int which, int group, std::int64_t rows) {
  auto [it, is_new] = buffers_.try_emplace({kind, which, group});
  if (is_new) {
    static constexpr const char* kNames[] = {"stage", "sums of stage", "sums that arrived"};
    const std::int64_t heads = own_keys(group).k.heads.size();
    const auto add = [&](TensorRole role) -> Region {
      const int buffer = writer_.add_buffer(
          {fmt::format("{} of {} {}, group {}", to_string(role), kNames[static_cast<int>(kind)],
                       which, group),
           role, rows, static_cast<int>(heads), kind != BufferKind::keys, false, false});
      return {buffer, {0, rows}, {0, heads}};
    };
    const Region k = add(kind == BufferKind::keys ? TensorRole::k : TensorRole::dk);
    it->second = {k, add(kind == BufferKind::keys ? TensorRole::v : TensorRole::dv)};
  }
  return it->second;
}

KeyPair Cast::keys(int step, int block, int group) {
  if (step == 0) return rows_of_pair(own_keys(group), {0, shard_.tokens});
  const CastStage& stage = stage_of(step);
  return rows_of_pair(buffer(BufferKind::keys, step, group, stage.rows),
                      stage.blocks[static_cast<std::size_t>(block)].rows);
}

void Cast::fetch(int step) {
  if (step + 1 >= steps()) return;
  const CastStage& stage = stage_of(step + 1);
  Exchange exchange{seen_only_ ? Pattern::group_cast : Pattern::all_gather, {}, {}};
  for (int group = 0; group < groups_; ++group) {
    const KeyPair own = own_keys(group);
    for (const Parcel& parcel : stage.to) {
      for (const Range run : parcel.runs) append(exchange.sends, parcel.peer, own, run);
      append(exchange.sends, parcel.peer, own, parcel.padding);
    }
    if (stage.rows == 0) continue;
    const KeyPair arriving = buffer(BufferKind::keys, step + 1, group, stage.rows);
    for (const Parcel& parcel : stage.from) {
      for (const Range run : parcel.into) append(exchange.receives, parcel.peer, arriving, run);
      append(exchange.receives, parcel.peer, arriving, parcel.padding_into);
    }
  }
  writer_.add(std::move(exchange), step);
  copy_own_keys(step);
}

Parcel Cast::needed_own_keys(const CastStage& stage) const {
  Parcel needed;
  for (std::size_t run = 0; run < stage.own.runs.size(); ++run) {
    const Range into = stage.own.into[run];
    const std::int64_t to_own = stage.own.runs[run].begin - into.begin;
    for (const Range part : common_ranges(std::vector{into}, needed_)) {
      needed.into.push_back(part);
      needed.runs.push_back({part.begin + to_own, part.end + to_own});
    }
  }
  return needed;
}

/// Listed before the step's calls: queued behind a kernel that fills the GPU, the copies would wait
/// until that ends.
void Cast::copy_own_keys(int step) {
  const CastStage& stage = stage_of(step + 1);
  const Parcel own = needed_own_keys(stage);
  for (int group = 0; group < groups_; ++group) {
    for (std::size_t run = 0; run < own.runs.size(); ++run) {
      const KeyPair from = rows_of_pair(own_keys(group), own.runs[run]);
      const KeyPair to =
          rows_of_pair(buffer(BufferKind::keys, step + 1, group, stage.rows), own.into[run]);
      writer_.add(Copy{from.k, to.k}, step);
      writer_.add(Copy{from.v, to.v}, step);
    }
  }
}

void Cast::begin_gradients(std::vector<KeyPair> own) {
  own_gradients_ = std::move(own);
  summed_ = in_flight_ = 0;
}

GradientTarget& Cast::target(int, int block, int group) {
  return targets_[static_cast<std::size_t>(block * groups_ + group)];
}

void Cast::before_gradients(int step) {
  in_flight_ = std::exchange(summed_, 0);
  if (in_flight_ > 0) send_sums(in_flight_, step);
  targets_.clear();
  if (step == 0) {
    for (const KeyPair& own : own_gradients_) targets_.push_back({own});
    return;
  }
  for (const CastStage::Block& block : stage_of(step).blocks) {
    for (int group = 0; group < groups_; ++group) {
      // With a JointSplit, only rows that a call has written are read.
      targets_.push_back(
          {rows_of_pair(buffer(BufferKind::sums, step % 2, group, max_rows_), block.rows),
           !split_.has_value()});
    }
  }
}

void Cast::after_gradients(int step) {
  if (in_flight_ > 0) add_arrived(std::exchange(in_flight_, 0), step);
  summed_ = step;
}

LateSums Cast::finish_gradients(const std::function<void()>& meanwhile) {
  if (summed_ > 0) send_sums(summed_, steps());
  meanwhile();
  return summed_ > 0 ? sums_of(std::exchange(summed_, 0))
                     : LateSums(static_cast<std::size_t>(groups_));
}

void Cast::send_sums(int of_step, int step) {
  const CastStage& stage = stage_of(of_step);
  Exchange exchange{seen_only_ ? Pattern::group_reduce : Pattern::reduce_scatter, {}, {}};
  for (int group = 0; group < groups_; ++group) {
    if (stage.rows > 0) {
      const KeyPair sums = buffer(BufferKind::sums, of_step % 2, group, max_rows_);
      for (const Parcel& parcel : stage.from) {
        for (const Range run : parcel.into) append(exchange.sends, parcel.peer, sums, run);
      }
    }
    if (rows_to(stage) == 0) continue;
    const KeyPair arriving = buffer(BufferKind::arrived, 0, group, max_arriving_);
    std::int64_t row = 0;
    for (const Parcel& parcel : stage.to) {
      for (const Range run : parcel.runs) {
        append(exchange.receives, parcel.peer, arriving, {row, row + run.size()});
        row += run.size();
      }
    }
  }
  writer_.add(std::move(exchange), step);
}

LateSums Cast::sums_of(int step) {
  const CastStage& stage = stage_of(step);
  LateSums sums(static_cast<std::size_t>(groups_));
  for (int group = 0; group < groups_; ++group) {
    auto& of_group = sums[static_cast<std::size_t>(group)];
    const Parcel own = needed_own_keys(stage);
    for (std::size_t run = 0; run < own.runs.size(); ++run) {
      const KeyPair joint = buffer(BufferKind::sums, step % 2, group, max_rows_);
      of_group.push_back({rows_of_pair(joint, own.into[run]), own.runs[run]});
    }
    if (rows_to(stage) == 0) continue;
    const KeyPair arrived = buffer(BufferKind::arrived, 0, group, max_arriving_);
    std::int64_t row = 0;
    for (const Parcel& parcel : stage.to) {
      for (const Range run : parcel.runs) {
        of_group.push_back({rows_of_pair(arrived, {row, row + run.size()}), run});
        row += run.size();
      }
    }
  }
  return sums;
}

void Cast::add_arrived(int of_step, int step) {
  const LateSums sums = sums_of(of_step);
  for (std::size_t group = 0; group < sums.size(); ++group) {
    for (const LateSum& sum : sums[group]) {
      const KeyPair into = rows_of_pair(own_gradients_[group], sum.rows);
      writer_.add(Add{sum.from.k, into.k}, step);
      writer_.add(Add{sum.from.v, into.v}, step);
    }
  }
}

}  // namespace longca
