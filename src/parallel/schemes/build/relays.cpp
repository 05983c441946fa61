#include "parallel/schemes/build/relays.h"

#include <algorithm>
#include <utility>

#include "core/rounding.h"
#include "mask/range.h"

namespace longca {
namespace {

/// Runs of keys are divided between CP ranks in multiples of this many tokens.
constexpr std::int64_t kGrain = 16;

/// Keys that the same CP ranks of a node have.
struct Segment {
  Range tokens;
  std::vector<std::size_t> by;  ///< ascending
};

/// Cuts the keys that somebody has where the CP ranks that have them change; ascending.
std::vector<Segment> segments_of(const std::vector<std::vector<Range>>& has) {
  struct Change {
    std::int64_t token = 0;
    std::size_t by = 0;
  };
  std::vector<Change> changes;
  for (std::size_t i = 0; i < has.size(); ++i) {
    for (const Range range : has[i]) {
      changes.insert(changes.end(), {{range.begin, i}, {range.end, i}});
    }
  }
  std::ranges::stable_sort(changes, {}, &Change::token);
  std::vector<Segment> segments;
  std::vector<bool> now(has.size());
  std::int64_t begin = 0;
  for (const auto& [token, by] : changes) {
    if (token > begin) {
      Segment segment{{begin, token}, {}};
      for (std::size_t i = 0; i < now.size(); ++i) {
        if (now[i]) segment.by.push_back(i);
      }
      if (!segment.by.empty()) segments.push_back(std::move(segment));
    }
    now[by] = !now[by];
    begin = token;
  }
  return segments;
}

/// The level to which the lowest of `loads` (ascending) rise if they share `tokens` more.
std::int64_t level_of(const std::vector<std::int64_t>& loads, std::int64_t tokens) {
  std::int64_t sum = tokens;
  for (std::size_t i = 0; i < loads.size(); ++i) {
    sum += loads[i];
    const auto count = static_cast<std::int64_t>(i) + 1;
    const std::int64_t level = ceil_div(sum, count);
    if (i + 1 == loads.size() || level <= loads[i + 1]) return level;
  }
  return 0;
}

}  // namespace

std::vector<KeyShare> share_keys(std::span<const std::vector<Range>> has,
                                 std::span<const Range> keys) {
  std::vector<std::vector<Range>> wanted;
  for (const std::vector<Range>& all : has) wanted.push_back(common_ranges(all, keys));
  std::vector<Segment> segments = segments_of(wanted);
  std::ranges::stable_sort(segments, {}, [](const Segment& segment) { return segment.by.size(); });
  std::vector<KeyShare> shares(has.size());
  std::vector<std::int64_t> load(has.size());
  for (const Segment& segment : segments) {
    if (segment.by.size() == 1) {
      shares[segment.by.front()].alone.push_back(segment.tokens);
      load[segment.by.front()] += segment.tokens.size();
      continue;
    }
    std::vector<std::int64_t> loads;
    for (const std::size_t i : segment.by) loads.push_back(load[i]);
    std::ranges::sort(loads);
    const std::int64_t level = level_of(loads, segment.tokens.size());
    Range rest = segment.tokens;
    for (const std::size_t i : segment.by) {
      const std::int64_t missing = std::max<std::int64_t>(level - load[i], 0);
      const std::int64_t size = std::min(round_up(missing, kGrain), rest.size());
      if (size == 0) continue;
      shares[i].shared.push_back({rest.begin, rest.begin + size});
      load[i] += size;
      rest.begin += size;
    }
  }
  for (KeyShare& one : shares) {
    join_ranges(one.alone);
    join_ranges(one.shared);
  }
  return shares;
}

NodeRelays::NodeRelays(const Grid& grid, const SeenKeys& seen, const CastStages& stages)
    : stages_(stages) {
  for (int cp_rank = 0; cp_rank < grid.cp_ranks(); ++cp_rank) {
    own_.push_back(grid.cp_rank_shard(cp_rank).ranges);
    seen_.push_back(seen.by(own_.back()));
    for (const Range range : own_.back()) owned_.push_back({range, cp_rank});
  }
  std::ranges::sort(owned_, {}, [](const Owned& owned) { return owned.tokens.begin; });
}

Range NodeRelays::members(int node) const {
  const std::int64_t begin = std::int64_t{node} * stages_.node;
  return {begin, std::min<std::int64_t>(begin + stages_.node, std::ssize(own_))};
}

std::vector<KeyShare> NodeRelays::brought(int node, int stage) const {
  std::vector<Range> keys;
  for (const auto& [tokens, owner] : owned_) {
    if (owner / stages_.node == node || stages_.stage_of(owner, node) != stage) continue;
    keys.push_back(tokens);
  }
  join_ranges(keys);
  const Range all = members(node);
  return share_keys(std::span(seen_).subspan(at(all.begin), at(all.size())), keys);
}

}  // namespace longca
