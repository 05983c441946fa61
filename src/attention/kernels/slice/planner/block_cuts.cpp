#include "attention/kernels/slice/planner/block_cuts.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <limits>

#include "core/rounding.h"
#include "mask/block_draw.h"
#include "mask/range.h"

namespace longca::slice {
namespace {

/// Blocks of the other side, over all lists, of which as many are looked at: others are like them.
constexpr std::int64_t kSamples = 4096;

/// Tokens up to which tiles are cut: a place for each is 256 MB.
constexpr std::int64_t kMaxCutTokens = std::int64_t{1} << 24;

/// Bits of what each block of a side sees in all lists, one list after the other; of many lists or
/// blocks every one of some.
class SeenBlocks {
 public:
  SeenBlocks(const BlockLists& blocks, BlockSide side)
      : of_queries_(side == BlockSide::queries),
        others_(of_queries_ ? blocks.k_blocks() : blocks.q_blocks()),
        // Odd, to meet other blocks in each list, as their numbers are often powers of two.
        step_(blocks.heads * others_ / kSamples | 1),
        words_(ceil_div(blocks.heads * others_, 64 * step_)),
        bits_(static_cast<std::size_t>(words_ *
                                       (of_queries_ ? blocks.q_blocks() : blocks.k_blocks()))) {
    for (int head = 0; head < blocks.heads; ++head) {
      for (std::int64_t q = 0; q < blocks.q_blocks(); ++q) {
        for (const std::int32_t k : blocks.kept(head, q)) set(head, q, k);
      }
    }
  }

  /// One of how many blocks is looked at.
  std::int64_t step() const { return step_; }

  /// How many of the other side's blocks both halves of a tile see, and one alone. `first` and
  /// `second` are the halves' blocks.
  struct Counts {
    std::int64_t both = 0, one = 0;
  };
  Counts count(Range first, Range second) const {
    Counts counts;
    for (std::int64_t word = 0; word < words_; ++word) {
      const std::uint64_t a = seen_by(first, word);
      const std::uint64_t b = seen_by(second, word);
      counts.both += std::popcount(a & b);
      counts.one += std::popcount(a ^ b);
    }
    return counts;
  }

 private:
  void set(int head, std::int64_t q, std::int64_t k) {
    const std::int64_t place = head * others_ + (of_queries_ ? k : q);
    if (place % step_ != 0) return;
    const std::int64_t bit = place / step_;
    const std::int64_t block = of_queries_ ? q : k;
    bits_[static_cast<std::size_t>(block * words_ + bit / 64)] |= std::uint64_t{1} << bit % 64;
  }
  std::uint64_t seen_by(Range blocks, std::int64_t word) const {
    std::uint64_t bits = 0;
    for (std::int64_t i = blocks.begin; i < blocks.end; ++i) {
      bits |= bits_[static_cast<std::size_t>(i * words_ + word)];
    }
    return bits;
  }

  bool of_queries_;
  std::int64_t others_;
  std::int64_t step_;
  std::int64_t words_;  ///< per block
  std::vector<std::uint64_t> bits_;
};

/// The shortest path to each place, and where its last tile begins.
class Path {
 public:
  Path(const BlockLists& blocks, BlockSide side, std::int64_t tile, const TileCosts& costs)
      : bounds_(side == BlockSide::queries ? blocks.q_bounds : blocks.k_bounds),
        tile_(tile),
        start_(costs.start),
        short_share_(costs.short_share),
        seen_(blocks, side),
        reached_(static_cast<std::size_t>(bounds_.back()) + 1) {
    const std::vector<std::int64_t>& others =
        side == BlockSide::queries ? blocks.k_bounds : blocks.q_bounds;
    both_ = costs.token * static_cast<double>(others.back()) /
            static_cast<double>(std::max<std::size_t>(1, others.size() - 1)) *
            static_cast<double>(seen_.step());
    one_ = both_ * costs.half_share;
  }

  std::vector<std::int64_t> find() {
    const std::int64_t tokens = bounds_.back();
    reached_[0].cost = 0;
    for (std::int64_t begin = 0; begin < tokens; ++begin) {
      // Whole tiles from 0 on are always a path, so that none is found that costs more.
      if (begin % tile_ == 0 || is_ahead(begin)) leave(begin);
    }
    std::vector<std::int64_t> cuts;
    for (std::int64_t at = tokens; at > 0; at = reached_[static_cast<std::size_t>(at)].from) {
      cuts.push_back(at);
    }
    cuts.push_back(0);
    std::ranges::reverse(cuts);
    return cuts;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  struct Place {
    double cost = kNever;
    std::int64_t from = 0;
  };

  /// Whether this place is reached, and none behind it for less: what begins there sees less, if
  /// sometimes with both halves what one alone sees from here.
  bool is_ahead(std::int64_t begin) const {
    const auto here = reached_.begin() + begin;
    const auto end = reached_.begin() + std::min(begin + tile_ + 1, bounds_.back() + 1);
    return here->cost < kNever && std::none_of(here + 1, end, [&](const Place& place) {
             return place.cost <= here->cost;
           });
  }

  /// Takes each tile that begins here.
  void leave(std::int64_t begin) {
    while (bounds_[block_ + 1] <= begin) ++block_;
    const std::int64_t last = std::min(begin + tile_, bounds_.back());
    for (std::size_t next = block_ + 1; bounds_[next] < last; ++next) take(begin, bounds_[next]);
    take(begin, last);
  }

  void take(std::int64_t begin, std::int64_t end) {
    const std::int64_t middle = std::min(begin + tile_ / 2, end);
    const SeenBlocks::Counts counts =
        seen_.count(blocks_of({begin, middle}), blocks_of({middle, end}));
    const double visits =
        both_ * static_cast<double>(counts.both) + one_ * static_cast<double>(counts.one);
    const double share = end - begin < tile_ ? short_share_ : 1;
    const double cost = reached_[static_cast<std::size_t>(begin)].cost + start_ + share * visits;
    Place& place = reached_[static_cast<std::size_t>(end)];
    if (cost < place.cost) place = {cost, begin};
  }

  /// The blocks that hold some tokens, of which none is before block_.
  Range blocks_of(Range tokens) const {
    if (tokens.empty()) return {0, 0};
    std::size_t first = block_;
    while (bounds_[first + 1] <= tokens.begin) ++first;
    std::size_t last = first;
    while (bounds_[last + 1] < tokens.end) ++last;
    return {static_cast<std::int64_t>(first), static_cast<std::int64_t>(last) + 1};
  }

  const std::vector<std::int64_t>& bounds_;
  std::int64_t tile_;
  double start_;
  double short_share_;
  double both_ = 0, one_ = 0;  ///< per block of the other side that both halves see, and one alone
  SeenBlocks seen_;
  std::vector<Place> reached_;
  std::size_t block_ = 0;  ///< of the tile's first token
};

}  // namespace

std::vector<std::int64_t> cut_at_blocks(const BlockLists& blocks, BlockSide side, std::int64_t tile,
                                        const TileCosts& costs) {
  const std::vector<std::int64_t>& bounds =
      side == BlockSide::queries ? blocks.q_bounds : blocks.k_bounds;
  if (bounds.back() == 0) return {0};
  if (bounds.back() > kMaxCutTokens) return uniform_bounds(bounds.back(), tile);
  return Path(blocks, side, tile, costs).find();
}

}  // namespace longca::slice
