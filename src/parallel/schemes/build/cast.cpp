#include "parallel/schemes/build/cast.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "mask/range.h"
#include "parallel/schemes/build/cast_layout.h"

namespace longca {
namespace {

void append(std::vector<Message>& messages, int peer, const KeyPair& all, Range rows) {
  if (rows.empty()) return;
  const KeyPair pair = rows_of_pair(all, rows);
  messages.insert(messages.end(), {{peer, pair.k}, {peer, pair.v}});
}

std::int64_t token_count(const std::vector<Parcel>& parcels) {
  std::int64_t rows = 0;
  for (const Parcel& parcel : parcels) rows += total_size(parcel.tokens);
  return rows;
}

/// Appends a message per run, for buffers that hold the parcels' keys one after the other.
void append_packed(std::vector<Message>& messages, const std::vector<Parcel>& parcels,
                   const KeyPair& packed) {
  std::int64_t row = 0;
  for (const Parcel& parcel : parcels) {
    for (const Range run : parcel.runs) {
      append(messages, parcel.peer, packed, {row, row + run.size()});
      row += run.size();
    }
  }
}

/// Calls visit(own rows, rows of the packed buffer) for every run.
template <typename Visit>
void for_each_packed(const std::vector<Parcel>& parcels, Visit&& visit) {
  std::int64_t row = 0;
  for (const Parcel& parcel : parcels) {
    for (const Range run : parcel.runs) {
      visit(run, Range{row, row + run.size()});
      row += run.size();
    }
  }
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
  relays_ = options.stages.node > 1;
  for (const CastStage& stage : stages_) {
    max_rows_ = std::max(max_rows_, stage.rows);
    max_arriving_ = std::max(max_arriving_, token_count(stage.to));
    max_relayed_ = std::max(max_relayed_, token_count(stage.shared_from));
    max_passed_ = std::max(max_passed_, token_count(stage.pass_to));
    max_returned_ = std::max(max_returned_, token_count(stage.shared_to));
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
    for (const auto* parcels : {&stage.to, &stage.shared_to}) {
      for (const Parcel& parcel : *parcels) {
        rows.insert(rows.end(), parcel.runs.begin(), parcel.runs.end());
      }
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
    static constexpr const char* kNames[] = {"stage",       "sums of stage", "sums that arrived",
                                             "sums passed", "sums relayed",  "sums returned"};
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
  const Pattern pattern = seen_only_ ? Pattern::group_cast : Pattern::all_gather;
  Exchange exchange{pattern, {}, {}};
  Exchange passing{pattern, {}, {}};
  for (int group = 0; group < groups_; ++group) {
    const KeyPair own = own_keys(group);
    const auto append_own = [&](const std::vector<Parcel>& parcels) {
      for (const Parcel& parcel : parcels) {
        for (const Range run : parcel.runs) append(exchange.sends, parcel.peer, own, run);
        append(exchange.sends, parcel.peer, own, parcel.padding);
      }
    };
    append_own(stage.to);
    append_own(stage.shared_to);
    if (stage.rows == 0) continue;
    const KeyPair arriving = buffer(BufferKind::keys, step + 1, group, stage.rows);
    const auto append_all = [&](std::vector<Message>& messages,
                                const std::vector<Parcel>& parcels) {
      for (const Parcel& parcel : parcels) {
        for (const Range run : parcel.into) append(messages, parcel.peer, arriving, run);
        append(messages, parcel.peer, arriving, parcel.padding_into);
      }
    };
    append_all(exchange.receives, stage.from);
    append_all(exchange.receives, stage.shared_from);
    append_all(passing.sends, stage.pass_to);
    append_all(passing.receives, stage.pass_from);
  }
  writer_.add(std::move(exchange), step);
  writer_.add(std::move(passing), step);
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
  summed_ = in_flight_ = relayed_ = returning_ = 0;
}

GradientTarget& Cast::target(int, int block, int group) {
  return targets_[static_cast<std::size_t>(std::int64_t{block} * groups_ + group)];
}

void Cast::before_gradients(int step) {
  in_flight_ = std::exchange(summed_, 0);
  returning_ = std::exchange(relayed_, 0);
  send_sums(in_flight_, returning_, step);
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
  if (returning_ > 0) {
    LateSums returned(static_cast<std::size_t>(groups_));
    append_returned(std::exchange(returning_, 0), returned);
    add_to_own(returned, step);
  }
  if (in_flight_ > 0) {
    add_to_own(sums_of(in_flight_), step);
    sum_relayed(in_flight_, step);
    if (relays_) relayed_ = in_flight_;
    in_flight_ = 0;
  }
  summed_ = step;
}

LateSums Cast::finish_gradients(const std::function<void()>& meanwhile) {
  const int last = std::exchange(summed_, 0);
  const int relayed = std::exchange(relayed_, 0);
  send_sums(last, relayed, steps());
  meanwhile();
  LateSums sums = last > 0 ? sums_of(last) : LateSums(static_cast<std::size_t>(groups_));
  if (relayed > 0) append_returned(relayed, sums);
  if (relays_) {
    sum_relayed(last, steps());
    send_sums(0, last, steps());
    append_returned(last, sums);
  }
  return sums;
}

void Cast::send_sums(int direct, int relayed, int step) {
  Exchange exchange{seen_only_ ? Pattern::group_reduce : Pattern::reduce_scatter, {}, {}};
  for (int group = 0; group < groups_; ++group) {
    if (direct > 0) append_direct(direct, group, exchange);
    if (relayed > 0) append_relayed(relayed, group, exchange);
  }
  writer_.add(std::move(exchange), step);
}

void Cast::append_direct(int of_step, int group, Exchange& exchange) {
  const CastStage& stage = stage_of(of_step);
  if (stage.rows > 0) {
    const KeyPair sums = buffer(BufferKind::sums, of_step % 2, group, max_rows_);
    for (const auto* parcels : {&stage.from, &stage.pass_from}) {
      for (const Parcel& parcel : *parcels) {
        for (const Range run : parcel.into) append(exchange.sends, parcel.peer, sums, run);
      }
    }
  }
  if (token_count(stage.to) > 0) {
    append_packed(exchange.receives, stage.to,
                  buffer(BufferKind::arrived, 0, group, max_arriving_));
  }
  if (token_count(stage.pass_to) > 0) {
    append_packed(exchange.receives, stage.pass_to,
                  buffer(BufferKind::passed, 0, group, max_passed_));
  }
}

void Cast::append_relayed(int of_step, int group, Exchange& exchange) {
  const CastStage& stage = stage_of(of_step);
  if (!stage.relayed.empty()) {
    const KeyPair relayed = buffer(BufferKind::relayed, 0, group, max_relayed_);
    for (const Parcel& parcel : stage.shared_from) {
      for (const Range run : rows_among(stage.relayed, parcel.into)) {
        append(exchange.sends, parcel.peer, relayed, run);
      }
    }
  }
  if (token_count(stage.shared_to) > 0) {
    append_packed(exchange.receives, stage.shared_to,
                  buffer(BufferKind::returned, of_step % 2, group, max_returned_));
  }
}

void Cast::sum_relayed(int of_step, int step) {
  if (stage_of(of_step).relayed.empty()) return;
  for (int group = 0; group < groups_; ++group) {
    for (const TensorRole role : {TensorRole::dk, TensorRole::dv}) {
      writer_.add(relayed_total(of_step, group, role), step);
    }
  }
}

Total Cast::relayed_total(int of_step, int group, TensorRole role) {
  const CastStage& stage = stage_of(of_step);
  const auto of_role = [&](const KeyPair& pair) {
    return role == TensorRole::dk ? pair.k : pair.v;
  };
  const Region sums = of_role(buffer(BufferKind::sums, of_step % 2, group, max_rows_));
  const Region relayed = of_role(buffer(BufferKind::relayed, 0, group, max_relayed_));
  Total total{{}, with_rows(relayed, {0, total_size(stage.relayed)})};
  for (const Range run : stage.relayed) {
    total.parts.push_back({with_rows(sums, run), rows_among(stage.relayed, {run}).front().begin});
  }
  for_each_packed(stage.pass_to, [&](Range tokens, Range packed) {
    const std::vector<Range> into = rows_among(stage.blocks.front().ranges, {tokens});
    const Region passed = of_role(buffer(BufferKind::passed, 0, group, max_passed_));
    total.parts.push_back(
        {with_rows(passed, packed), rows_among(stage.relayed, into).front().begin});
  });
  return total;
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
    if (token_count(stage.to) == 0) continue;
    const KeyPair arrived = buffer(BufferKind::arrived, 0, group, max_arriving_);
    for_each_packed(stage.to, [&](Range own, Range packed) {
      of_group.push_back({rows_of_pair(arrived, packed), own});
    });
  }
  return sums;
}

void Cast::append_returned(int of_step, LateSums& sums) {
  const CastStage& stage = stage_of(of_step);
  if (token_count(stage.shared_to) == 0) return;
  for (int group = 0; group < groups_; ++group) {
    const KeyPair returned = buffer(BufferKind::returned, of_step % 2, group, max_returned_);
    for_each_packed(stage.shared_to, [&](Range own, Range packed) {
      sums[static_cast<std::size_t>(group)].push_back({rows_of_pair(returned, packed), own});
    });
  }
}

void Cast::add_to_own(const LateSums& sums, int step) {
  for (std::size_t group = 0; group < sums.size(); ++group) {
    for (const LateSum& sum : sums[group]) {
      const KeyPair into = rows_of_pair(own_gradients_[group], sum.rows);
      writer_.add(Add{sum.from.k, into.k}, step);
      writer_.add(Add{sum.from.v, into.v}, step);
    }
  }
}

}  // namespace longca
