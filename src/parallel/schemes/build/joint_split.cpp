#include "parallel/schemes/build/joint_split.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "mask/range.h"
#include "parallel/schemes/build/cutter.h"
#include "parallel/schemes/build/joint_costs.h"

namespace longca {
namespace {

/// A split must save 3 % of the time: less is within the error of the estimate.
constexpr double kWorthwhile = 0.97;
constexpr std::size_t kMaxGaps = Cutter::kMaxPieces;

/// The rows that see some key of `keys`; ascending, not touching.
std::vector<Range> rows_that_see(const Mask& rows_of_all, const std::vector<Range>& keys) {
  const std::vector<Range> all = {{0, rows_of_all.q_tokens()}};
  const Mask mask = rows_of_all.sub_mask(all, keys);
  std::vector<Range> rows;
  for (const MaskSlice& slice : mask.slices()) rows.push_back(Band::of(slice).rows());
  join_ranges(rows);
  return rows;
}

/// The `count` longest of the ascending `gaps`, ascending.
std::vector<Range> longest(std::vector<Range> gaps, std::size_t count) {
  std::ranges::stable_sort(gaps, std::greater<>{}, &Range::size);
  gaps.resize(std::min(gaps.size(), count));
  std::ranges::sort(gaps, {}, &Range::begin);
  return gaps;
}

/// The rows of each kernel call on foreign keys, as a Cutter would cut them.
std::vector<Range> calls_on(const std::vector<Range>& rows, std::int64_t min_gap) {
  std::vector<Range> inner;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const Range gap = {rows[i - 1].end, rows[i].begin};
    if (gap.size() >= min_gap) inner.push_back(gap);
  }
  inner = longest(std::move(inner), Cutter::kMaxPieces - 1);
  std::vector<Range> calls;
  std::int64_t begin = rows.front().begin;
  for (const Range gap : inner) {
    calls.push_back({begin, gap.begin});
    begin = gap.end;
  }
  calls.push_back({begin, rows.back().end});
  return calls;
}

JointSplit::Rows split_at(const std::vector<Range>& alone, std::size_t early, std::int64_t tokens) {
  const auto middle = alone.begin() + static_cast<std::ptrdiff_t>(early);
  return {{alone.begin(), middle}, outside(alone, tokens), {middle, alone.end()}};
}

/// The split for a `min_gap` that the caller has set. In the backward pass, half of the ranges that
/// see own keys only are computed first.
std::optional<JointSplit> split_as_asked(std::vector<Range> gaps, std::int64_t min_gap,
                                         std::int64_t tokens) {
  std::erase_if(gaps, [&](Range gap) { return gap.size() < min_gap; });
  gaps = longest(std::move(gaps), kMaxGaps - 1);
  if (gaps.empty()) return std::nullopt;
  return JointSplit{
      split_at(gaps, gaps.size(), tokens), split_at(gaps, (gaps.size() + 1) / 2, tokens), {}};
}

/// The split that leaves the longest gaps out of the joint rows, as many as minimise the time of
/// each pass; none if both passes together take `max_seconds` or more.
std::optional<JointSplit> cheapest(const std::vector<Range>& gaps, std::int64_t tokens,
                                   const JointCosts& costs, double max_seconds) {
  JointSplit best;
  double forward = std::numeric_limits<double>::infinity();
  double backward = forward;
  for (std::size_t count = 0; count <= std::min(gaps.size(), kMaxGaps); ++count) {
    const std::vector<Range> alone = longest(gaps, count);
    const std::vector<Range> joint = outside(alone, tokens);
    if (joint.size() > Cutter::kMaxPieces) continue;
    if (const double end = costs.forward_by_rows(alone, joint); end < forward) {
      forward = end;
      best.forward = split_at(alone, alone.size(), tokens);
    }
    for (std::size_t early = 0; early <= alone.size(); ++early) {
      const double end = costs.backward_by_rows(alone, joint, early);
      if (end >= backward) continue;
      backward = end;
      best.backward = split_at(alone, early, tokens);
    }
  }
  return forward + backward < max_seconds ? std::optional(best) : std::nullopt;
}

/// The longest gap of own keys that no joint row sees but that are copied along with the keys
/// around them: moving their K and V takes no longer than starting another copy.
double max_filled_keys(const cost::Platform& platform, const cost::HeadShape& shape) {
  return platform.memory.seconds_per_copy / cost::memory_seconds(platform, 2 * shape.key_bytes());
}

/// Tokens of the own keys that the joint rows need in the buffer, with gaps of up to `max_filled`
/// own keys filled.
std::vector<Range> keys_of(const std::vector<Range>& joint, const Shard& shard,
                           const SeenKeys& seen, const std::vector<Range>& foreign,
                           double max_filled) {
  std::vector<Range> queries;  // tokens
  std::int64_t row = 0;
  for (const Range range : shard.ranges) {
    for (const Range rows : joint) {
      const Range both = intersect(rows, {row, row + range.size()});
      if (both.empty()) continue;
      queries.push_back({range.begin + both.begin - row, range.begin + both.end - row});
    }
    row += range.size();
  }
  std::vector<Range> keys = common_ranges(seen.by(queries), shard.ranges);
  std::vector<Range> filled = keys;
  for (std::size_t i = 1; i < keys.size(); ++i) {
    const std::vector<Range> between = {{keys[i - 1].end, keys[i].begin}};
    const std::vector<Range> own = common_ranges(between, shard.ranges);
    if (!common_ranges(between, foreign).empty()) continue;
    if (static_cast<double>(total_size(own)) > max_filled) continue;
    filled.insert(filled.end(), own.begin(), own.end());
  }
  join_ranges(filled);
  return filled;
}

}  // namespace

std::optional<JointSplit> choose_joint_split(const ParallelProblem& problem, const Shard& shard,
                                             const SeenKeys& seen, const CastTraffic& traffic) {
  if (problem.mask.blocks() != nullptr || shard.tokens == 0) return std::nullopt;
  const std::vector<Range> all_keys = {{0, problem.mask.k_tokens()}};
  const std::vector<Range> all_rows = {{0, shard.tokens}};
  const Mask rows_of_all = problem.mask.sub_mask(shard.ranges, all_keys);
  const std::vector<Range> rows = rows_that_see(rows_of_all, traffic.foreign);
  const std::vector<Range> gaps = outside(rows, shard.tokens);
  std::optional<JointSplit> split;
  if (rows.empty()) {
    // No row is joint: gradients from other ranks arrive while all rows are computed.
    split =
        JointSplit{split_at(all_rows, 1, shard.tokens), split_at(all_rows, 0, shard.tokens), {}};
  } else if (problem.min_gap > 0) {
    split = split_as_asked(gaps, problem.min_gap, shard.tokens);
  } else {
    const JointCosts costs(problem, shard.tokens, traffic, rows_of_all);
    const Mask foreign = rows_of_all.sub_mask(all_rows, traffic.foreign);
    const std::int64_t min_gap = min_gap_of(*problem.platform, problem.shape());
    const std::vector<Range> calls = calls_on(rows, min_gap);
    split = cheapest(gaps, shard.tokens, costs, kWorthwhile * costs.by_keys(calls, foreign));
  }
  if (!split) return std::nullopt;
  std::vector<Range> joint = split->forward.joint;
  joint.insert(joint.end(), split->backward.joint.begin(), split->backward.joint.end());
  join_ranges(joint);
  split->own_keys = keys_of(joint, shard, seen, traffic.foreign,
                            max_filled_keys(*problem.platform, problem.shape()));
  return split;
}

}  // namespace longca
