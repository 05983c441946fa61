#include "parallel/partition/balanced_partition.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <queue>
#include <utility>

#include "core/rounding.h"
#include "mask/mask_slice.h"

namespace longca {
namespace {

/// Shorter chunks are not tried once the areas differ by no more than this.
constexpr double kGoodImbalance = 1.02;
/// Up to this many chunks per CP rank are tried however short they get; more only while a chunk
/// fills a kernel's tile, or where waiting for the slowest would cost more than part-filled tiles.
constexpr int kFewChunks = 8;
constexpr std::int64_t kTileTokens = 128;
constexpr double kPoorImbalance = 1.5;
constexpr std::int64_t kMinTokens = 32;
/// The largest area, over the mean, that bringing neighbours together may cause.
constexpr double kNeighbourImbalance = 1.005;
constexpr int kNeighbourPasses = 3;

bool is_one_full_slice(const Mask& mask) {
  const auto slices = mask.slices();
  return slices.size() == 1 &&
         slices[0] == MaskSlice{0, mask.q_tokens(), 0, mask.k_tokens(), MaskSliceType::full};
}

/// Area of each chunk's queries, summed over heads. Kept blocks count with their mean size: the
/// lists of a mask of 1M tokens have 10^8 entries, and exact areas would gain nothing.
class ChunkAreas {
 public:
  explicit ChunkAreas(const Mask& mask) : mask_(mask) {
    if (mask.blocks() == nullptr || !is_one_full_slice(mask)) return;
    const BlockLists& blocks = *mask.blocks();
    const double keys_per_block =
        static_cast<double>(mask.k_tokens()) / static_cast<double>(blocks.k_blocks());
    row_areas_.resize(static_cast<std::size_t>(blocks.q_blocks()), 0.0);
    for (int head = 0; head < blocks.heads; ++head) {
      for (std::int64_t i = 0; i < blocks.q_blocks(); ++i) {
        row_areas_[static_cast<std::size_t>(i)] +=
            static_cast<double>(blocks.kept(head, i).size()) * keys_per_block;
      }
    }
  }

  std::vector<double> of(std::int64_t chunk) const {
    std::vector<double> areas;
    for (std::int64_t at = 0; at < mask_.q_tokens(); at += chunk) {
      const Range rows = {at, std::min(at + chunk, mask_.q_tokens())};
      areas.push_back(row_areas_.empty() ? measured(rows) : counted(rows));
    }
    return areas;
  }

 private:
  double measured(Range rows) const {
    double area = 0;
    for (int head = 0; head < mask_.heads(); ++head) {
      area += static_cast<double>(mask_.area_in(head, rows, {0, mask_.k_tokens()}));
    }
    return area;
  }

  double counted(Range rows) const {
    const auto& bounds = mask_.blocks()->q_bounds;
    auto block = std::upper_bound(bounds.begin(), bounds.end(), rows.begin) - bounds.begin() - 1;
    double area = 0;
    for (; block + 1 < std::ssize(bounds) && bounds[static_cast<std::size_t>(block)] < rows.end;
         ++block) {
      const auto i = static_cast<std::size_t>(block);
      area +=
          row_areas_[i] * static_cast<double>(intersect(rows, {bounds[i], bounds[i + 1]}).size());
    }
    return area;
  }

  const Mask& mask_;
  std::vector<double> row_areas_;  ///< area of a single row, per query block
};

/// The owner of each chunk, and the search that improves it.
class Partition {
 public:
  Partition(std::vector<double> areas, int cp_ranks)
      : areas_(std::move(areas)),
        owner_(areas_.size(), -1),
        chunks_(static_cast<std::size_t>(cp_ranks)),
        loads_(static_cast<std::size_t>(cp_ranks), 0.0) {
    mean_ = std::accumulate(areas_.begin(), areas_.end(), 0.0) / cp_ranks;
    longest_first();
    lower_the_largest();
  }

  double imbalance() const { return mean_ > 0 ? largest() / mean_ : 1.0; }

  /// Moves chunks next to their neighbours, in exchange for chunks of about their area.
  void join_neighbours() {
    const double limit = std::max(largest(), kNeighbourImbalance * mean_);
    for (int pass = 0; pass < kNeighbourPasses; ++pass) {
      bool moved = false;
      for (int c = 0; c + 1 < std::ssize(owner_); ++c) {
        moved = fetch_neighbour(c, c + 1, limit) || fetch_neighbour(c + 1, c, limit) || moved;
      }
      if (!moved) return;
    }
  }

  std::vector<std::vector<Range>> ranges(std::int64_t chunk, std::int64_t tokens) const {
    std::vector<std::vector<Range>> assigned(chunks_.size());
    for (std::size_t c = 0; c < owner_.size(); ++c) {
      auto& own = assigned[static_cast<std::size_t>(owner_[c])];
      const Range range = {static_cast<std::int64_t>(c) * chunk,
                           std::min(static_cast<std::int64_t>(c + 1) * chunk, tokens)};
      if (!own.empty() && own.back().end == range.begin) {
        own.back().end = range.end;
      } else {
        own.push_back(range);
      }
    }
    return assigned;
  }

 private:
  double area(int chunk) const { return areas_[static_cast<std::size_t>(chunk)]; }
  double& load(int cp_rank) { return loads_[static_cast<std::size_t>(cp_rank)]; }
  int owner(int chunk) const {
    return chunk < 0 || chunk >= std::ssize(owner_) ? -1 : owner_[static_cast<std::size_t>(chunk)];
  }
  std::vector<int>& chunks(int cp_rank) { return chunks_[static_cast<std::size_t>(cp_rank)]; }
  double largest() const { return *std::max_element(loads_.begin(), loads_.end()); }

  void give(int chunk, int cp_rank) {
    owner_[static_cast<std::size_t>(chunk)] = cp_rank;
    chunks(cp_rank).push_back(chunk);
    load(cp_rank) += area(chunk);
  }

  /// R. L. Graham's longest-first rule, with equally many chunks (±1) for every CP rank.
  void longest_first() {
    std::vector<int> order(areas_.size());
    std::iota(order.begin(), order.end(), 0);
    // Of equal chunks the last comes first: causal masks then become zigzag.
    std::sort(order.begin(), order.end(),
              [&](int a, int b) { return area(a) != area(b) ? area(a) > area(b) : a > b; });
    const std::size_t base = areas_.size() / chunks_.size();
    std::size_t extra = areas_.size() % chunks_.size();
    using Entry = std::pair<double, int>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> by_load;
    for (int p = 0; p < std::ssize(chunks_); ++p) by_load.emplace(0.0, p);
    for (const int chunk : order) {
      while (chunks(by_load.top().second).size() >= base && extra == 0) by_load.pop();
      const int cp_rank = by_load.top().second;
      by_load.pop();
      if (chunks(cp_rank).size() >= base) --extra;
      give(chunk, cp_rank);
      if (chunks(cp_rank).size() <= base) by_load.emplace(load(cp_rank), cp_rank);
    }
  }

  /// Swaps chunks between the most and the least loaded CP rank while that helps.
  void lower_the_largest() {
    for (std::size_t round = 0; round < 2 * chunks_.size(); ++round) {
      const auto [min, max] = std::minmax_element(loads_.begin(), loads_.end());
      const auto from = static_cast<int>(max - loads_.begin());
      const auto to = static_cast<int>(min - loads_.begin());
      const double gap = *max - *min;
      if (gap <= 0) return;
      const auto pair = best_swap(from, to, gap);
      if (!pair) return;
      swap(pair->first, pair->second);
    }
  }

  /// The chunks of two CP ranks whose exchange comes nearest to moving half of the gap between
  /// their loads; none if no exchange makes the larger load smaller.
  std::optional<std::pair<int, int>> best_swap(int from, int to, double gap) {
    std::vector<std::pair<double, int>> others;  // by area
    for (const int b : chunks(to)) others.emplace_back(area(b), b);
    std::sort(others.begin(), others.end());
    std::optional<std::pair<int, int>> best;
    double best_error = gap / 2;  // a swap must move more than nothing and less than the gap
    for (const int a : chunks(from)) {
      const double wanted = area(a) - gap / 2;
      auto other = std::lower_bound(others.begin(), others.end(), std::pair{wanted, 0});
      if (other != others.begin()) --other;
      for (int i = 0; i < 2 && other != others.end(); ++i, ++other) {
        const double error = std::abs(other->first - wanted);
        if (error >= best_error) continue;
        best_error = error;
        best = {a, other->second};
      }
    }
    return best;
  }

  void swap(int a, int b) {
    const int p = owner(a);
    const int q = owner(b);
    *std::find(chunks(p).begin(), chunks(p).end(), a) = b;
    *std::find(chunks(q).begin(), chunks(q).end(), b) = a;
    std::swap(owner_[static_cast<std::size_t>(a)], owner_[static_cast<std::size_t>(b)]);
    load(p) += area(b) - area(a);
    load(q) += area(a) - area(b);
  }

  int neighbours(int chunk, int cp_rank) const {
    return static_cast<int>(owner(chunk - 1) == cp_rank) +
           static_cast<int>(owner(chunk + 1) == cp_rank);
  }

  /// Brings `wanted` to the CP rank of its neighbour `chunk`, in exchange for the first chunk there
  /// with which more neighbours end up together. Returns whether there was one.
  bool fetch_neighbour(int chunk, int wanted, double limit) {
    const int p = owner(chunk);
    const int q = owner(wanted);
    if (p == q) return false;
    const int gain = neighbours(wanted, p) - neighbours(wanted, q);
    for (const int out : chunks(p)) {
      if (std::abs(out - wanted) <= 1) continue;
      const double moved = area(wanted) - area(out);
      if (load(p) + moved > limit || load(q) - moved > limit) continue;
      if (gain + neighbours(out, q) - neighbours(out, p) <= 0) continue;
      swap(wanted, out);
      return true;
    }
    return false;
  }

  std::vector<double> areas_;
  std::vector<int> owner_;                ///< per chunk
  std::vector<std::vector<int>> chunks_;  ///< per CP rank
  std::vector<double> loads_;
  double mean_ = 0;
};

bool is_too_short(std::int64_t length, std::int64_t chunks, double imbalance) {
  const std::int64_t min_tokens = imbalance > kPoorImbalance ? kMinTokens : kTileTokens;
  return chunks > kFewChunks && length < min_tokens;
}

}  // namespace

BalancedPartition partition_balanced(const Mask& mask, int cp_ranks, std::int64_t chunk) {
  const std::int64_t tokens = mask.q_tokens();
  const ChunkAreas areas(mask);
  std::optional<Partition> best;
  std::int64_t best_chunk = chunk;
  if (chunk > 0) best.emplace(areas.of(chunk), cp_ranks);
  for (std::int64_t count = 1; chunk == 0; count *= 2) {
    const std::int64_t length = std::max<std::int64_t>(ceil_div(tokens, cp_ranks * count), 1);
    if (best && is_too_short(length, count, best->imbalance())) break;
    Partition partition(areas.of(length), cp_ranks);
    if (!best || partition.imbalance() < best->imbalance()) {
      best = std::move(partition);
      best_chunk = length;
    }
    if (best->imbalance() <= kGoodImbalance || length == 1) break;
  }
  best->join_neighbours();
  return {best_chunk, best->ranges(best_chunk, tokens)};
}

}  // namespace longca
