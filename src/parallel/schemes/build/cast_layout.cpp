#include "parallel/schemes/build/cast_layout.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "mask/range.h"
#include "parallel/schemes/build/relays.h"

namespace longca {
namespace {

/// rows_among, with runs that touch joined.
std::vector<Range> joined_rows_among(const std::vector<Range>& ranges,
                                     const std::vector<Range>& parts) {
  std::vector<Range> rows = rows_among(ranges, parts);
  join_ranges(rows);
  return rows;
}

/// Lays out all keys that arrive, with the own ones among them, in ascending order; a run is one
/// range of tokens.
void lay_out_sorted(CastStage& stage) {
  CastStage::Block block;
  const auto arrive = [&](const Parcel& parcel) {
    block.ranges.insert(block.ranges.end(), parcel.tokens.begin(), parcel.tokens.end());
  };
  for (const auto* parcels : {&stage.from, &stage.shared_from, &stage.pass_from}) {
    for (const Parcel& parcel : *parcels) arrive(parcel);
  }
  arrive(stage.own);
  join_ranges(block.ranges);
  stage.rows = total_size(block.ranges);
  block.rows = {0, stage.rows};
  const auto place = [&](Parcel& parcel) { parcel.into = rows_among(block.ranges, parcel.tokens); };
  for (auto* parcels : {&stage.from, &stage.shared_from, &stage.pass_from, &stage.pass_to}) {
    for (Parcel& parcel : *parcels) place(parcel);
  }
  place(stage.own);
  for (const Parcel& parcel : stage.shared_from) {
    stage.relayed.insert(stage.relayed.end(), parcel.into.begin(), parcel.into.end());
  }
  join_ranges(stage.relayed);
  if (stage.rows > 0) stage.blocks.push_back(std::move(block));
}

/// Lays out one owner after the other: its keys, then its padding.
void lay_out_by_owner(CastStage& stage) {
  for (Parcel& parcel : stage.from) {
    const std::int64_t begin = stage.rows;
    for (const Range run : parcel.runs) {
      parcel.into.push_back({stage.rows, stage.rows + run.size()});
      stage.rows += run.size();
    }
    if (stage.rows > begin) stage.blocks.push_back({parcel.tokens, {begin, stage.rows}});
    parcel.padding_into = {stage.rows, stage.rows + parcel.padding.size()};
    stage.rows += parcel.padding.size();
  }
}

/// Joins runs that are consecutive at both ends.
void join_runs(Parcel& parcel) {
  std::size_t last = 0;
  for (std::size_t i = 1; i < parcel.runs.size(); ++i) {
    const bool follows = parcel.runs[last].end == parcel.runs[i].begin &&
                         parcel.into[last].end == parcel.into[i].begin;
    if (follows) {
      parcel.runs[last].end = parcel.runs[i].end;
      parcel.into[last].end = parcel.into[i].end;
    } else {
      ++last;
      parcel.runs[last] = parcel.runs[i];
      parcel.into[last] = parcel.into[i];
    }
  }
  if (parcel.runs.empty()) return;
  parcel.runs.resize(last + 1);
  parcel.into.resize(last + 1);
}

CastTraffic traffic_of(const CastStage& stage) {
  CastTraffic traffic;
  std::size_t sends = 0, receives = 0;
  for (const auto* parcels : {&stage.to, &stage.shared_to, &stage.pass_to}) {
    for (const Parcel& parcel : *parcels) {
      traffic.sent_tokens += total_size(parcel.tokens);
      sends += parcel.runs.size();
    }
  }
  for (const auto* parcels : {&stage.from, &stage.shared_from, &stage.pass_from}) {
    for (const Parcel& parcel : *parcels) {
      traffic.foreign.insert(traffic.foreign.end(), parcel.tokens.begin(), parcel.tokens.end());
      receives += parcel.runs.size();
    }
  }
  join_ranges(traffic.foreign);
  traffic.messages = static_cast<std::int64_t>(std::max(sends, receives));
  return traffic;
}

/// Makes the stages of one CP rank.
class CastLayout {
 public:
  CastLayout(const Grid& grid, int rank, const Cast::Options& options)
      : grid_(grid),
        options_(options),
        member_(grid.member(rank)),
        cp_rank_(grid.cp_rank(rank)),
        own_(grid.cp_rank_shard(cp_rank_)) {
    if (options.seen) seen_ = options.seen->by(own_.ranges);
    if (options.stages.node > 1) relays_.emplace(grid, *options.seen, options.stages);
  }

  std::vector<CastStage> stages(const Cast::ChooseSplit& choose_split,
                                std::optional<JointSplit>& split) const {
    std::vector<CastStage> stages;
    const std::size_t count = options_.stages.count();
    for (std::size_t i = 0; i < count; ++i) {
      CastStage& stage = stages.emplace_back();
      relays_ ? add_relayed(stage, static_cast<int>(i))
              : add_direct(stage, options_.stages.distances[i]);
      if (options_.by_owner) {
        lay_out_by_owner(stage);
        continue;
      }
      if (options_.seen && count == 1) split = choose_split(traffic_of(stage));
      if (split) stage.own.tokens = common_ranges(split->own_keys, own_.ranges);
      stage.own.runs = rows_among(own_.ranges, stage.own.tokens);
      lay_out_sorted(stage);
      join_runs(stage.own);
    }
    return stages;
  }

 private:
  Parcel parcel(int other, const Shard& owner, std::vector<Range> tokens) const {
    const auto rows = options_.by_owner ? joined_rows_among : rows_among;
    Parcel out{grid_.rank(other, member_), {}, rows(owner.ranges, tokens), {}, {}, {}};
    out.tokens = std::move(tokens);
    if (!options_.seen) out.padding = {owner.tokens, owner.rows};
    LONGCA_CHECK(options_.by_owner || out.padding.empty(), "padding among sorted keys");
    return out;
  }

  /// Keys straight from their owners to all that need them.
  void add_direct(CastStage& stage, Range distances) const {
    const int cp_ranks = grid_.cp_ranks();
    for (auto distance = static_cast<int>(distances.begin); distance < distances.end; ++distance) {
      const int sender = (cp_rank_ - distance + cp_ranks) % cp_ranks;
      const Shard owner = grid_.cp_rank_shard(sender);
      stage.from.push_back(
          parcel(sender, owner, options_.seen ? common_ranges(seen_, owner.ranges) : owner.ranges));
      const int receiver = (cp_rank_ + distance) % cp_ranks;
      stage.to.push_back(parcel(
          receiver, own_,
          options_.seen
              ? common_ranges(options_.seen->by(grid_.cp_rank_shard(receiver).ranges), own_.ranges)
              : own_.ranges));
    }
  }

  /// Keys of other nodes to one CP rank of a node, which passes them on.
  void add_relayed(CastStage& stage, int index) const {
    const std::vector<KeyShare> home = relays_->brought(node_of(cp_rank_), index);
    const KeyShare& brought = home[place_of(cp_rank_)];
    std::vector<KeyShare> there;
    int known = -1;  // the node of `there`
    for (int distance = 1; distance < grid_.cp_ranks(); ++distance) {
      const int other = (cp_rank_ + distance) % grid_.cp_ranks();
      if (travels(other, cp_rank_, index)) add_keys_of(other, brought, stage);
      const std::vector<Range> wanted = common_ranges(relays_->seen(other), own_.ranges);
      if (wanted.empty() || !travels(cp_rank_, other, index)) continue;
      if (node_of(other) == node_of(cp_rank_)) {
        stage.to.push_back(parcel(other, own_, wanted));
        continue;
      }
      if (std::exchange(known, node_of(other)) != node_of(other)) {
        there = relays_->brought(node_of(other), index);
      }
      const KeyShare& theirs = there[place_of(other)];
      stage.to.push_back(parcel(other, own_, common_ranges(theirs.alone, own_.ranges)));
      stage.shared_to.push_back(parcel(other, own_, common_ranges(theirs.shared, own_.ranges)));
    }
    const Range node = relays_->members(node_of(cp_rank_));
    for (int other = static_cast<int>(node.begin); other < node.end; ++other) {
      if (other == cp_rank_) continue;
      stage.pass_from.push_back(passed(other, common_ranges(home[place_of(other)].shared, seen_)));
      stage.pass_to.push_back(passed(other, common_ranges(brought.shared, relays_->seen(other))));
    }
  }

  void add_keys_of(int owner, const KeyShare& brought, CastStage& stage) const {
    const Shard shard = grid_.cp_rank_shard(owner);
    const bool is_near = node_of(owner) == node_of(cp_rank_);
    const std::vector<Range>& alone = is_near ? seen_ : brought.alone;
    stage.from.push_back(parcel(owner, shard, common_ranges(alone, shard.ranges)));
    if (is_near) return;
    stage.shared_from.push_back(parcel(owner, shard, common_ranges(brought.shared, shard.ranges)));
  }

  int node_of(int cp_rank) const { return cp_rank / options_.stages.node; }
  std::size_t place_of(int cp_rank) const {
    return static_cast<std::size_t>(cp_rank % options_.stages.node);
  }
  bool travels(int owner, int to, int index) const {
    return options_.stages.stage_of(owner, node_of(to)) == index;
  }

  Parcel passed(int peer, const std::vector<Range>& tokens) const {
    return {grid_.rank(peer, member_), tokens, tokens, {}, {}, {}};
  }

  const Grid& grid_;
  const Cast::Options& options_;
  int member_, cp_rank_;
  Shard own_;
  std::vector<Range> seen_;  ///< by the own queries
  std::optional<NodeRelays> relays_;
};

}  // namespace

std::vector<Range> rows_among(const std::vector<Range>& ranges, const std::vector<Range>& parts) {
  std::vector<Range> rows;
  std::int64_t before = 0;
  auto range = ranges.begin();
  for (const Range part : parts) {
    for (; range->end <= part.begin; ++range) before += range->size();
    const std::int64_t begin = before + part.begin - range->begin;
    rows.push_back({begin, begin + part.size()});
  }
  return rows;
}

std::vector<CastStage> cast_layout(const Grid& grid, int rank, const Cast::Options& options,
                                   const Cast::ChooseSplit& choose_split,
                                   std::optional<JointSplit>& split) {
  return CastLayout(grid, rank, options).stages(choose_split, split);
}

}  // namespace longca
