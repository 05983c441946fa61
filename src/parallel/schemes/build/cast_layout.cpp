#include "parallel/schemes/build/cast_layout.h"

#include <algorithm>

#include "core/error.h"

namespace longca {
namespace {

/// The keys (tokens) that a CP rank with these queries receives from an owner.
std::vector<Range> wanted(const Cast::Options& options, const Shard& queries, const Shard& owner) {
  if (!options.seen) return owner.ranges;
  return common_ranges(options.seen->by(queries.ranges), owner.ranges);
}

/// The rows of these tokens in their owner's shard, one run per range; `join`: touching runs
/// joined. Each range must lie within one of the owner's.
std::vector<Range> rows_of(const Shard& owner, const std::vector<Range>& tokens, bool join) {
  std::vector<Range> rows;
  std::int64_t first_row = 0;
  auto range = owner.ranges.begin();
  for (const Range part : tokens) {
    for (; range->end <= part.begin; ++range) first_row += range->size();
    const std::int64_t begin = first_row + part.begin - range->begin;
    if (join && !rows.empty() && rows.back().end == begin) {
      rows.back().end += part.size();
    } else {
      rows.push_back({begin, begin + part.size()});
    }
  }
  return rows;
}

/// Lays out the keys of all owners, with the `own` ones among them, in ascending order; a run is
/// one range of tokens.
void lay_out_sorted(CastStage& stage, const std::vector<std::vector<Range>>& tokens,
                    const std::vector<Range>& own) {
  struct Place {
    Range tokens;
    Range* into;
  };
  std::vector<Place> places;
  const auto take = [&](Parcel& parcel, const std::vector<Range>& ranges) {
    parcel.into.resize(ranges.size());
    for (std::size_t run = 0; run < ranges.size(); ++run) {
      places.push_back({ranges[run], &parcel.into[run]});
    }
  };
  for (std::size_t i = 0; i < tokens.size(); ++i) take(stage.from[i], tokens[i]);
  take(stage.own, own);
  std::sort(places.begin(), places.end(),
            [](const Place& a, const Place& b) { return a.tokens.begin < b.tokens.begin; });
  CastStage::Block block;
  for (const Place& place : places) {
    *place.into = {stage.rows, stage.rows + place.tokens.size()};
    stage.rows = place.into->end;
    block.ranges.push_back(place.tokens);
  }
  join_ranges(block.ranges);
  block.rows = {0, stage.rows};
  if (stage.rows > 0) stage.blocks.push_back(std::move(block));
}

/// Lays out one owner after the other: its keys, then its padding.
void lay_out_by_owner(CastStage& stage, const std::vector<std::vector<Range>>& tokens) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    Parcel& parcel = stage.from[i];
    const std::int64_t begin = stage.rows;
    for (const Range run : parcel.runs) {
      parcel.into.push_back({stage.rows, stage.rows + run.size()});
      stage.rows += run.size();
    }
    if (stage.rows > begin) stage.blocks.push_back({tokens[i], {begin, stage.rows}});
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

CastTraffic traffic_of(const CastStage& stage, const std::vector<std::vector<Range>>& tokens) {
  CastTraffic traffic;
  for (const std::vector<Range>& ranges : tokens) {
    traffic.foreign.insert(traffic.foreign.end(), ranges.begin(), ranges.end());
  }
  join_ranges(traffic.foreign);
  std::size_t sends = 0, receives = 0;
  for (const Parcel& parcel : stage.to) {
    for (const Range run : parcel.runs) traffic.sent_tokens += run.size();
    sends += parcel.runs.size();
  }
  for (const Parcel& parcel : stage.from) receives += parcel.runs.size();
  traffic.messages = static_cast<std::int64_t>(std::max(sends, receives));
  return traffic;
}

}  // namespace

std::vector<CastStage> cast_layout(const Grid& grid, int rank, const Cast::Options& options,
                                   const Cast::ChooseSplit& choose_split,
                                   std::optional<JointSplit>& split) {
  const int cp_rank = grid.cp_rank(rank);
  const int cp_ranks = grid.cp_ranks();
  const Shard own = grid.cp_rank_shard(cp_rank);
  const auto parcel = [&](int other, const Shard& owner, const std::vector<Range>& tokens) {
    Parcel out{
        grid.rank(other, grid.member(rank)), rows_of(owner, tokens, options.by_owner), {}, {}, {}};
    if (!options.seen) out.padding = {owner.tokens, owner.rows};
    LONGCA_CHECK(options.by_owner || out.padding.empty(), "padding among sorted keys");
    return out;
  };
  std::vector<CastStage> stages;
  for (const Range distances : options.stages) {
    CastStage& stage = stages.emplace_back();
    std::vector<std::vector<Range>> tokens;  // per sender
    for (auto distance = static_cast<int>(distances.begin); distance < distances.end; ++distance) {
      const int sender = (cp_rank - distance + cp_ranks) % cp_ranks;
      const Shard owner = grid.cp_rank_shard(sender);
      tokens.push_back(wanted(options, own, owner));
      stage.from.push_back(parcel(sender, owner, tokens.back()));
      const int receiver = (cp_rank + distance) % cp_ranks;
      stage.to.push_back(parcel(receiver, own, wanted(options, grid.cp_rank_shard(receiver), own)));
    }
    if (options.by_owner) {
      lay_out_by_owner(stage, tokens);
      continue;
    }
    if (options.seen && options.stages.size() == 1) split = choose_split(traffic_of(stage, tokens));
    const std::vector<Range> in_buffer =
        split ? common_ranges(split->own_keys, own.ranges) : std::vector<Range>{};
    stage.own.runs = rows_of(own, in_buffer, false);
    lay_out_sorted(stage, tokens, in_buffer);
    join_runs(stage.own);
  }
  return stages;
}

}  // namespace longca
