#include "attention/kernels/slice/planner/work_cuts.h"

#include <algorithm>
#include <functional>
#include <queue>

namespace longca::slice {
namespace {

/// A place of shared keys is set to zero, added to and read again, for every KV head: of all work
/// groups that many cycles, and there is one kernel more.
constexpr std::int64_t kSharedTileCycles = 110;
constexpr std::int64_t kSharedCycles = 3000;
/// Parts have at least so many visits.
constexpr std::int64_t kMinPart = 4;
/// Items per CTA: more are planned for longer than they gain.
constexpr std::int64_t kMaxItems = 12;
/// Of the time that is left when a share is begun, what it may take, in 16ths.
constexpr int kPortions[] = {16, 12, 8, 6, 4, 2};
/// What is to be gained by cuts: a 20th of the time, a 50th where few rows see many keys.
constexpr std::int64_t kBar = 20;
constexpr std::int64_t kLowBar = 50;

std::int64_t split_tiles(std::span<const WorkShare> shares, const TransposedLists& lists) {
  std::vector<std::int32_t> counts(static_cast<std::size_t>(lists.tiles_per_list));
  std::int64_t shared = 0;
  for (const WorkShare& share : shares) {
    shared += ++counts[static_cast<std::size_t>(share.item.tile)] == 2;
  }
  return shared;
}

/// Their sums take no more than a quarter of what those of dQ take, or 64 MB at 128 dimensions: all
/// of 8K keys of 8 heads, for the last rows of a document on their own see as many.
std::int64_t most_shared_tiles(const BackwardWork& work, const TransposedLists& lists) {
  std::int64_t q_tiles = 0;
  for (const KeyTile& tile : lists.tiles) q_tiles = std::max<std::int64_t>(q_tiles, tile.q_end);
  const std::int64_t rows = q_tiles * lists.tile_tokens() * work.heads_q;
  constexpr std::int64_t kRows = std::int64_t{64} << 20 >> 9;
  return std::max(rows / 4, kRows) / (std::int64_t{2} * kTileKeys * work.heads_k);
}

/// Whether few rows see many keys, as where a rank computes the end of a document on its own.
bool has_few_rows(const TransposedLists& lists) {
  std::int64_t q_tiles = 0;
  std::int64_t keys = 0;
  for (const KeyTile& tile : lists.tiles) {
    q_tiles = std::max<std::int64_t>(q_tiles, tile.q_end);
    keys += tile.k_end - tile.k_begin;
  }
  return 3 * q_tiles * lists.tile_tokens() <= 2 * keys;
}

/// Every CTA's part of what is left of the last section when each share is begun.
std::vector<std::int64_t> times_left(std::span<const WorkShare> shares, const BackwardWork& work,
                                     int heads) {
  std::vector<std::int64_t> left(shares.size());
  std::int64_t sum = 0;
  for (std::size_t i = shares.size(); i-- > 0;) {
    sum += shares[i].cost * heads;
    left[i] = sum / work.ctas;
  }
  return left;
}

/// Into how many parts a share is cut that are to take `most` cycles each.
std::int64_t parts_of(const WorkShare& share, std::int64_t most, std::int64_t head_blocks) {
  if (share.cost <= most) return 1;
  const std::int64_t visit = part_cost(2) - part_cost(1);
  const std::int64_t least = (kMinPart + head_blocks - 1) / head_blocks * head_blocks;
  const std::int64_t visits = std::max(least, (most - part_cost(1)) / visit + 1);
  return std::clamp<std::int64_t>((share.visits + visits - 1) / visits, 1,
                                  std::max<std::int64_t>(1, share.visits / least));
}

/// The shares, those cut that would take longer than a portion of the time that is left.
std::vector<WorkShare> cut_to(int portion, const BackwardWork& work, const TransposedLists& lists,
                              std::span<const WorkShare> shares,
                              std::span<const std::int64_t> left) {
  const std::int64_t blocks = head_blocks_of(work, lists);
  std::vector<WorkShare> cut;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const std::int64_t parts = parts_of(shares[i], left[i] * portion / 16, blocks);
    if (parts == 1) {
      cut.push_back(shares[i]);
    } else {
      split_share(work, lists, shares[i], parts, cut);
    }
  }
  return cut;
}

}  // namespace

std::int64_t finish_time(std::span<const WorkShare> shares, const BackwardWork& work, int heads) {
  std::priority_queue<std::int64_t, std::vector<std::int64_t>, std::greater<>> free;
  for (int i = 0; i < work.ctas; ++i) free.push(0);
  std::int64_t last = 0;
  for (int section = 0; section < work.heads_k; section += heads) {
    for (const WorkShare& share : shares) {
      for (int head = 0; head < heads; ++head) {
        const std::int64_t end = free.top() + share.cost;
        free.pop();
        free.push(end);
        last = std::max(last, end);
      }
    }
  }
  return last;
}

namespace {

/// Tries cuts and keeps the best.
class CutSearch {
 public:
  CutSearch(const BackwardWork& work, const TransposedLists& lists,
            std::span<const WorkShare> shares)
      : work_(work),
        lists_(lists),
        shares_(shares),
        most_shared_(most_shared_tiles(work, lists)),
        shared_before_(split_tiles(shares, lists)),
        together_(times_left(shares, work, work.heads_k).front()),
        bar_(has_few_rows(lists) ? kLowBar : kBar),
        least_(finish_time(shares, work, lists.section_heads)) {
    raise_bar();
    // CTAs that go through the rows once for each head block fall out of step by cuts.
    if (head_blocks_of(work, lists) > 1) raise_bar();
  }

  /// Nothing to be gained any more.
  bool done() const { return less(least_) <= together_; }

  void try_cuts(std::int32_t heads) {
    const std::vector<std::int64_t> left = times_left(shares_, work_, heads);
    for (const int portion : kPortions) {
      if (!done()) try_cut(heads, cut_to(portion, work_, lists_, shares_, left));
    }
  }
  /// From here on a cut must be better by more. Cuts cost more than the model knows, and what lies
  /// idle at the end has dQ to write: of 27 lists of masks and of their parts, as many rows as
  /// keys, that were cut for a 50th of the time, 20 ended 3 to 18 % later and 5 ended 2 to 11 %
  /// earlier. Of few rows there is little to write: six calls of 2K to 4K rows on 5K to 7K keys
  /// ended 1 to 15 % earlier, none later (H200).
  void raise_bar() { least_ -= least_ / bar_; }

  std::vector<WorkShare> best;  ///< empty: as it was
  std::int32_t best_heads = 0;

 private:
  static std::int64_t less(std::int64_t time) { return time - time / 100; }

  void try_cut(std::int32_t heads, std::vector<WorkShare> cut) {
    const std::int64_t shared = split_tiles(cut, lists_);
    if (shared > most_shared_ ||
        std::ssize(cut) * work_.heads_k >
            std::max(kMaxItems * work_.ctas, 2 * std::ssize(shares_) * work_.heads_k)) {
      return;
    }
    const std::int64_t finish = finish_time(cut, work_, heads) +
                                (shared - shared_before_) * work_.heads_k * kSharedTileCycles +
                                (shared > 0 && shared_before_ == 0 ? kSharedCycles : 0);
    if (finish > least_) return;
    least_ = finish;
    best = std::move(cut);
    best_heads = heads;
  }

  const BackwardWork& work_;
  const TransposedLists& lists_;
  std::span<const WorkShare> shares_;
  std::int64_t most_shared_;
  std::int64_t shared_before_;
  std::int64_t together_;  ///< if all CTAs finish together
  std::int64_t bar_;       ///< the part of the time that is to be gained is 1 / bar_
  std::int64_t least_;
};

}  // namespace

void cut_last_shares(const BackwardWork& work, TransposedLists& lists,
                     std::vector<WorkShare>& shares) {
  if (shares.empty()) return;
  CutSearch search(work, lists, shares);
  if (search.done()) return;
  search.try_cuts(lists.section_heads);
  if (lists.section_heads != work.heads_k) {
    // That the rows of fewer heads stay in L2 is worth something.
    search.raise_bar();
    search.try_cuts(work.heads_k);
  }
  if (search.best.empty()) return;
  lists.section_heads = search.best_heads;
  shares.swap(search.best);
}

}  // namespace longca::slice
