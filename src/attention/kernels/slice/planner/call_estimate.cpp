#include "attention/kernels/slice/planner/call_estimate.h"

#include <cstddef>
#include <cstdint>
#include <numeric>

#include "attention/kernels/slice/planner/pack.h"
#include "attention/kernels/slice/planner/tile_lists.h"
#include "attention/kernels/slice/planner/transposed_lists.h"
#include "cost/schedule.h"

namespace longca::slice {
namespace {

constexpr double kCycleDim = 128;  // head dimension of the platform's cycles
/// Bytes per element of a row before and after backward_kernel: O and dO are read, dQ is added up
/// and read in float32, and written.
constexpr double kBackwardRowBytes = 2 + 2 + 4 + 4 + 2;

/// Query heads that share a KV head and a list of the mask.
int shared_heads(const Mask& mask, const cost::HeadShape& shape) {
  return std::gcd(shape.heads_q / shape.heads_k, shape.heads_q / mask.heads());
}

/// Simulates the forward kernel's CTAs, or pairs of them, over its work tiles.
class ForwardSchedule {
 public:
  ForwardSchedule(const Mask& mask, const cost::HeadShape& shape, const cost::Platform& platform)
      : rates_(platform.slice.forward),
        start_cycles_(static_cast<double>(platform.call.forward.start_cycles)),
        pack_(choose_pack(mask, shared_heads(mask, shape), shape.head_dim, platform)),
        pairs_(pairs_fit(shared_heads(mask, shape), pack_, shape.head_dim)),
        heads_q_(shape.heads_q),
        lists_(make_tile_lists(mask, pack_, platform)),
        schedule_(static_cast<int>(platform.device.sms) / ctas()) {
    const int blocks = shape.heads_q / block_heads();
    const int sections =
        shape.heads_k / forward_section_heads(mask.k_tokens(), {shape.head_dim, shape.head_dim},
                                              shape.heads_k, platform.device.cache_bytes);
    for (int i = 0; i < sections; ++i) {
      add_section(blocks / sections * i, blocks / sections * (i + 1));
    }
  }

  double end() const { return schedule_.end(); }

 private:
  int ctas() const { return pairs_ ? 2 : 1; }
  int block_heads() const { return pack_ * ctas(); }

  /// Adds the work tiles of head blocks [begin, end), the longest of all of them first.
  void add_section(int begin, int end) {
    for (std::int64_t i = 0; i < lists_.tiles_per_list; ++i) {
      for (int block = begin; block < end; ++block) {
        const std::int64_t list =
            std::int64_t{block} * block_heads() * lists_.list_heads / heads_q_;
        const std::int64_t first = list * lists_.tiles_per_list;
        const std::int64_t tile = first + lists_.order[static_cast<std::size_t>(first + i)];
        schedule_.add(cycles(lists_.tiles[static_cast<std::size_t>(tile)]));
      }
    }
  }

  double cycles(const QueryTile& tile) const {
    const double alone = tile.cost;
    if (!pairs_) return start_cycles_ + alone;
    return start_cycles_ + static_cast<double>(rates_.pair_start_cycles) +
           rates_.pair_tile_share * (alone - static_cast<double>(rates_.tile_start_cycles));
  }

  const cost::SliceForwardCycles& rates_;
  double start_cycles_;
  int pack_;
  bool pairs_;
  int heads_q_;
  TileLists lists_;
  cost::ListSchedule<double> schedule_;
};

}  // namespace

double forward_seconds(const Mask& mask, const cost::HeadShape& shape,
                       const cost::Platform& platform) {
  if (mask.q_tokens() == 0) return 0;
  const double cycles = ForwardSchedule(mask, shape, platform).end() * shape.head_dim / kCycleDim;
  return platform.call.forward.seconds_per_call + cycles / platform.call.forward.cycles_per_second;
}

BackwardEstimate estimate_backward(const Mask& mask, const cost::HeadShape& shape,
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
                             .tile_keys = backward_tile_keys(dims)});
  const cost::BackwardCall& call = platform.call.backward;
  const double cycles = lists.end_cycles + call.chunk_item_cycles * lists.chunk_items;
  // A visit's cycles are those of 128 keys and dimensions.
  const double scale = shape.head_dim / kCycleDim * backward_tile_keys(dims) / kTileKeys;
  const double row_bytes = kBackwardRowBytes * shape.heads_q * shape.head_dim;
  const double seconds =
      call.seconds_per_call + cycles * scale / call.cycles_per_second +
      static_cast<double>(mask.q_tokens()) * row_bytes / call.row_bytes_per_second;
  const double split_keys = static_cast<double>(lists.split_keys.size()) * backward_tile_keys(dims);
  return {seconds, split_keys * shape.heads_k * 2 * shape.head_dim * 4};
}

double backward_seconds(const Mask& mask, const cost::HeadShape& shape,
                        const cost::Platform& platform) {
  return estimate_backward(mask, shape, platform).seconds;
}

}  // namespace longca::slice
