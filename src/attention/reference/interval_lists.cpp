#include "attention/reference/interval_lists.h"

#include <algorithm>
#include <numeric>

#include "core/thread_pool.h"

namespace longca {
namespace {

/// The tokens of the owner's side whose intervals may differ from those of the token before: at an
/// edge of a slice or block, and all inside a slice with a diagonal.
std::vector<bool> marked_changes(const Mask& mask, TileOwner owner) {
  const bool queries = owner == TileOwner::queries;
  std::vector<bool> changes(static_cast<std::size_t>(queries ? mask.q_tokens() : mask.k_tokens()));
  const auto mark = [&](std::int64_t begin, std::int64_t end) {
    end = std::min(end, static_cast<std::int64_t>(changes.size()));
    std::fill(changes.begin() + std::min(begin, end), changes.begin() + end, true);
  };
  for (const MaskSlice& slice : mask.slices()) {
    const Range range =
        queries ? Range{slice.q_begin, slice.q_end} : Range{slice.k_begin, slice.k_end};
    if (slice.type == MaskSliceType::full) {
      mark(range.begin, range.begin + 1);
      mark(range.end, range.end + 1);
    } else {
      mark(range.begin, range.end + 1);
    }
  }
  if (const BlockLists* blocks = mask.blocks()) {
    for (const std::int64_t bound : queries ? blocks->q_bounds : blocks->k_bounds) {
      mark(bound, bound + 1);
    }
  }
  return changes;
}

/// The lists of one tile of one head; indices are local to the tile.
struct TilePart {
  std::vector<std::int32_t> list_of;
  std::vector<std::int64_t> list_ends;
  std::vector<TokenInterval> intervals;
  std::vector<PartnerRun> runs;
  std::int64_t pairs = 0;
};

/// Counts the allowed cells per partner tile; tokens are added one distinct list at a time.
class CellCounter {
 public:
  explicit CellCounter(std::int64_t partner_tiles)
      : cells_(static_cast<std::size_t>(partner_tiles) + 1), steps_(cells_.size()) {}

  /// Adds `tokens` tokens whose partners include `range`.
  void add(const Range& range, std::int64_t tokens) {
    const std::int64_t first = range.begin / kTile;
    const std::int64_t last = range.end / kTile;  // holds the range's last, partial part if any
    if (first == last) {
      cells_[first] += tokens * range.size();
      return;
    }
    cells_[first] += tokens * ((first + 1) * kTile - range.begin);
    cells_[last] += tokens * (range.end - last * kTile);
    steps_[first + 1] += tokens * kTile;
    steps_[last] -= tokens * kTile;
  }

  void list_runs(TilePart& part) const {
    std::int64_t whole = 0;
    for (std::size_t t = 0; t + 1 < cells_.size(); ++t) {
      whole += steps_[t];
      const std::int64_t cells = whole + cells_[t];
      if (cells == 0) continue;
      ++part.pairs;
      const auto tile = static_cast<std::int32_t>(t);
      const std::int32_t full = cells == kTile * kTile ? 1 : 0;
      if (!part.runs.empty() && part.runs.back().end == tile && part.runs.back().full == full) {
        ++part.runs.back().end;
      } else {
        part.runs.push_back({tile, tile + 1, full});
      }
    }
  }

 private:
  std::vector<std::int64_t> cells_;
  std::vector<std::int64_t> steps_;  ///< differences, by tile, of the cells of wholly covered tiles
};

TilePart make_part(const Mask& mask, int head, TileOwner owner, std::int64_t tile,
                   const std::vector<bool>& changes) {
  const bool queries = owner == TileOwner::queries;
  const std::int64_t first = tile * kTile;
  const auto end = std::min(first + kTile, static_cast<std::int64_t>(changes.size()));
  TilePart part;
  CellCounter cells(tile_count(queries ? mask.k_tokens() : mask.q_tokens()));
  for (std::int64_t token = first; token < end;) {
    std::int64_t next = token + 1;
    while (next < end && !changes[static_cast<std::size_t>(next)]) ++next;
    const auto ranges =
        queries ? mask.key_intervals(head, token) : mask.query_intervals(head, token);
    for (const Range& range : ranges) {
      part.intervals.push_back(
          {static_cast<std::int32_t>(range.begin), static_cast<std::int32_t>(range.end)});
      cells.add(range, next - token);
    }
    part.list_of.insert(part.list_of.end(), static_cast<std::size_t>(next - token),
                        static_cast<std::int32_t>(part.list_ends.size()));
    part.list_ends.push_back(static_cast<std::int64_t>(part.intervals.size()));
    token = next;
  }
  cells.list_runs(part);
  return part;
}

void append_part(const TilePart& part, IntervalLists& out) {
  const auto first_list = static_cast<std::int32_t>(out.list_offsets.size() - 1);
  const auto first_interval = static_cast<std::int64_t>(out.intervals.size());
  for (const std::int32_t list : part.list_of) out.list_of.push_back(first_list + list);
  for (const std::int64_t end : part.list_ends) out.list_offsets.push_back(first_interval + end);
  out.intervals.insert(out.intervals.end(), part.intervals.begin(), part.intervals.end());
  out.runs.insert(out.runs.end(), part.runs.begin(), part.runs.end());
  out.run_offsets.push_back(static_cast<std::int64_t>(out.runs.size()));
  out.pairs += part.pairs;
}

template <typename T>
std::int64_t bytes_of(const std::vector<T>& values) {
  return static_cast<std::int64_t>(values.size() * sizeof(T));
}

}  // namespace

std::int64_t IntervalLists::bytes() const {
  return bytes_of(list_of) + bytes_of(list_offsets) + bytes_of(intervals) + bytes_of(run_offsets) +
         bytes_of(runs) + bytes_of(order);
}

IntervalLists make_interval_lists(const Mask& mask, TileOwner owner, std::span<const int> heads) {
  const std::vector<bool> changes = marked_changes(mask, owner);
  const std::int64_t tiles = tile_count(static_cast<std::int64_t>(changes.size()));
  std::vector<TilePart> parts(heads.size() * static_cast<std::size_t>(tiles));
  ThreadPool::global().parallel_for(
      static_cast<std::int64_t>(parts.size()), [&](std::int64_t i, int) {
        const int head = heads[static_cast<std::size_t>(i / tiles)];
        parts[static_cast<std::size_t>(i)] = make_part(mask, head, owner, i % tiles, changes);
      });
  IntervalLists out;
  out.tokens = static_cast<std::int64_t>(changes.size());
  out.list_offsets.push_back(0);
  out.run_offsets.push_back(0);
  for (const TilePart& part : parts) append_part(part, out);
  out.order.resize(parts.size());
  for (std::size_t head = 0; head < heads.size(); ++head) {
    const auto first = static_cast<std::int64_t>(head) * tiles;
    const auto begin = out.order.begin() + first;
    std::iota(begin, begin + tiles, 0);
    std::stable_sort(begin, begin + tiles, [&](std::int32_t a, std::int32_t b) {
      return parts[static_cast<std::size_t>(first + a)].pairs >
             parts[static_cast<std::size_t>(first + b)].pairs;
    });
  }
  return out;
}

}  // namespace longca
