#include "attention/kernels/slice/planner/call_estimate.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <numeric>
#include <span>
#include <vector>

#include "attention/kernels/slice/planner/block_lists.h"
#include "attention/kernels/slice/planner/cta_pairs.h"
#include "attention/kernels/slice/planner/pack.h"
#include "attention/kernels/slice/planner/tile_lists.h"
#include "attention/kernels/slice/planner/transposed_lists.h"
#include "cost/schedule.h"
#include "mask/list_of_head.h"

namespace longca::slice {
namespace {

/// Bytes per element of a row before and after backward_kernel: O and dO are read, dQ is added up
/// and read in float32, and written.
constexpr double kBackwardRowBytes = 2 + 2 + 4 + 4 + 2;

int shared_heads(const Mask& mask, const cost::HeadShape& shape) {
  return slice::shared_heads(shape.heads_q, shape.heads_k, mask.heads());
}

/// Simulates the forward kernel's CTAs, or pairs of them, over its work tiles.
class ForwardSchedule {
 public:
  ForwardSchedule(const Mask& mask, const cost::HeadShape& shape, const cost::Platform& platform)
      : rates_(platform.slice.forward),
        call_(platform.call.forward),
        tiling_(choose_tiling(mask, shared_heads(mask, shape), shape.head_dim, true, platform)),
        heads_q_(shape.heads_q),
        lists_(make_tile_lists(mask, tiling_, platform)),
        in_turn_(!tiling_.row_pairs && has_block_plan(mask, tiling_.pack) &&
                 key_tiles_per_query_tile(lists_).all >= rates_.min_in_turn_tiles),
        pairs_(has_cta_pairs(tiling_, in_turn_, shared_heads(mask, shape), shape.head_dim)),
        workers_(std::max(static_cast<int>(platform.device.sms) / ctas(), 1)),
        schedule_(workers_) {
    for (const QueryTile& tile : lists_.tiles) tile_cycles_.push_back(cycles(tile));
    const int blocks = shape.heads_q / block_heads();
    const int sections =
        shape.heads_k / forward_section_heads(mask.k_tokens(), {shape.head_dim, shape.head_dim},
                                              shape.heads_k, platform.device.cache_bytes);
    for (int i = 0; i < sections; ++i) {
      add_section(blocks / sections * i, blocks / sections * (i + 1));
    }
  }

  double end() const { return schedule_.end(); }
  /// Mean over the CTAs of the cycles in which they work.
  double busy() const { return work_ / workers_; }

 private:
  int ctas() const { return pairs_ ? 2 : 1; }
  int block_heads() const { return tiling_.pack * (tiling_.row_pairs ? 1 : ctas()); }

  /// Adds the work tiles of head blocks [begin, end), the longest of all of them first.
  void add_section(int begin, int end) {
    const int together = tiling_.tiles();
    for (std::int64_t i = 0; i < lists_.tiles_per_list; i += together) {
      for (int block = begin; block < end; ++block) {
        const std::int64_t list =
            list_of_head(std::int64_t{block} * block_heads(), lists_.list_heads, heads_q_);
        const std::int64_t first = list * lists_.tiles_per_list;
        const std::int64_t tile = first + lists_.order[static_cast<std::size_t>(first + i)];
        const auto cycles =
            std::span(tile_cycles_)
                .subspan(static_cast<std::size_t>(tile), static_cast<std::size_t>(together));
        const double taken = std::accumulate(cycles.begin(), cycles.end(), 0.0) / together;
        schedule_.add(taken);
        work_ += taken;
      }
    }
  }

  double cycles(const QueryTile& tile) const {
    const auto partial = std::span(lists_.partial)
                             .subspan(static_cast<std::size_t>(tile.partial_begin),
                                      static_cast<std::size_t>(tile.partial_count));
    const auto masked = std::ranges::count_if(partial, masks_both_groups);
    double alone = tile.cost + call_.both_groups_cycles * static_cast<double>(masked);
    if (in_turn_) {
      const TileCounts of_one_group{.partial = std::ranges::count_if(partial, is_of_one_group)};
      const TileCounts in_turn{.in_turn = of_one_group.partial};
      alone += static_cast<double>(in_turn.tile_cycles(rates_) - of_one_group.tile_cycles(rates_));
    }
    const auto start = static_cast<double>(call_.start_cycles);
    if (!pairs_) return start + alone;
    return start + static_cast<double>(rates_.pair_start_cycles) +
           rates_.pair_tile_share * (alone - static_cast<double>(rates_.tile_start_cycles));
  }

  /// Whether a partial tile of two sub-tiles has work for both row groups.
  static bool masks_both_groups(const PartialTile& tile) {
    return tile.k_begin[1] != kAbsent && tile.pattern[0] != kNone && tile.pattern[1] != kNone;
  }

  /// Whether a partial tile of two sub-tiles has work for one row group.
  static bool is_of_one_group(const PartialTile& tile) {
    return tile.k_begin[1] != kAbsent && (tile.pattern[0] == kNone) != (tile.pattern[1] == kNone);
  }

  const cost::SliceForwardCycles& rates_;
  const cost::ForwardCall& call_;
  Tiling tiling_;
  int heads_q_;
  TileLists lists_;
  /// Whether the device makes the lists, in which row groups take turns, and the kernel has them
  /// do so; lists_ are the host's.
  bool in_turn_;
  bool pairs_;   ///< of head blocks or query tiles
  int workers_;  ///< CTAs, or pairs of them, that run at a time
  cost::ListSchedule<double> schedule_;
  std::vector<double> tile_cycles_;  ///< of lists_.tiles
  double work_ = 0;                  ///< cycles of all work tiles
};

/// What one SM does of a backward call, on average: its visits to query tiles, and the items.
struct BackwardWorkload {
  double visits = 0;
  double partial_visits = 0;  ///< of these, under a mask
  /// Of all, those that see one half of the keys while the other warpgroup has visits of its own,
  /// as under block lists.
  double half_visits = 0;
  double items = 0;
};

BackwardWorkload workload(const TransposedLists& lists, const cost::HeadShape& shape, double sms) {
  BackwardWorkload all;
  for (const QuerySegment& segment : lists.segments) {
    all.visits += segment.count;
    if (segment.pattern >= 0) all.partial_visits += segment.count;
    if (lists.of_blocks && seen_halves(segment.pattern) != 3) all.half_visits += segment.count;
  }
  const double blocks =
      static_cast<double>(shape.heads_q) / static_cast<double>(lists.list_heads * lists.pack);
  const bool one_order = std::ssize(lists.order) == lists.items_per_order;
  all.items = static_cast<double>(lists.order.size()) * (one_order ? shape.heads_k : 1);
  return {all.visits * blocks / sms, all.partial_visits * blocks / sms,
          all.half_visits * blocks / sms, all.items / sms};
}

/// In units of what the platform's cycles are of.
double dims_of_cycles(const cost::HeadShape& shape) {
  return static_cast<double>(shape.head_dim) / kCycleDim;
}

}  // namespace

CallEstimate estimate_forward(const Mask& mask, const cost::HeadShape& shape,
                              const cost::Platform& platform) {
  if (mask.q_tokens() == 0) return {};
  const ForwardSchedule schedule(mask, shape, platform);
  const cost::ForwardCall& call = platform.call.forward;
  const double seconds_per_cycle = dims_of_cycles(shape) / call.cycles_per_second;
  const double cycles = schedule.end() * seconds_per_cycle;
  return {call.seconds_per_call + cycles, cycles, schedule.busy() * seconds_per_cycle, 0};
}

CallEstimate estimate_backward(const Mask& mask, const cost::HeadShape& shape,
                               const cost::Platform& platform) {
  if (mask.q_tokens() == 0) return {};
  const int pack = choose_backward_pack(mask, shared_heads(mask, shape));
  const DimPair dims = {shape.head_dim, shape.head_dim};
  const TransposedLists lists =
      make_transposed_lists(mask, pack,
                            {.platform = platform,
                             .heads_q = shape.heads_q,
                             .heads_k = shape.heads_k,
                             .chunk_visits = backward_chunk_visits(platform, dims),
                             .tile_keys = backward_tile_keys(dims),
                             .tells_halves = takes_halves(dims)});
  const cost::BackwardCall& call = platform.call.backward;
  const BackwardWorkload work = workload(lists, shape, static_cast<double>(platform.device.sms));
  const cost::SliceBackwardCycles& rates = platform.slice.backward;
  const auto visit_cycles = static_cast<double>(rates.query_tile_cycles);
  const double beside = call.chunk_item_cycles * lists.chunk_items +
                        call.partial_visit_cycles * work.partial_visits -
                        (1 - rates.half_visit_share) * visit_cycles * work.half_visits;
  // A visit's cycles are those of 128 keys and dimensions.
  const double seconds_per_cycle =
      dims_of_cycles(shape) * backward_tile_keys(dims) / kTileKeys / call.cycles_per_second;
  const double cycles = (lists.end_cycles + beside) * seconds_per_cycle;
  const double busy =
      beside + work.visits * visit_cycles + work.items * static_cast<double>(rates.key_tile_cycles);
  const double row_bytes = kBackwardRowBytes * shape.heads_q * shape.head_dim;
  const double rows = static_cast<double>(mask.q_tokens()) * row_bytes / call.row_bytes_per_second;
  const double split_keys = static_cast<double>(lists.split_keys.size()) * backward_tile_keys(dims);
  return {call.seconds_per_call + cycles + rows, cycles, std::min(busy * seconds_per_cycle, cycles),
          split_keys * shape.heads_k * 2 * shape.head_dim * 4};
}

}  // namespace longca::slice
