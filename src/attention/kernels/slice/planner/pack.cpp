#include "attention/kernels/slice/planner/pack.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>

#include "attention/kernels/slice/planner/tile_cover.h"
#include "attention/kernels/slice/planner/tile_lists.h"
#include "attention/kernels/slice/planner/transposed_lists.h"
#include "core/rounding.h"

namespace longca::slice {
namespace {

constexpr std::array kPacks = {1, 2, 4, 8};
/// Query tiles whose lists one core makes in 10 ms, whatever the mask.
constexpr std::int64_t kMaxTiles = 32 * 1024;
/// Stretches of 128 tokens to sample, evenly spread; fewer of block lists, whose rows are much
/// alike and take long to cover.
constexpr std::int64_t kSamples = 256;
constexpr std::int64_t kBlockSamples = 16;

/// Up to 64 dimensions a CTA has two streams of work tiles instead.
bool clusters_fit(int head_dim) {
  return head_dim > 64;
}

TileCounts counts_of(const TileCover& cover, bool joins = false) {
  const std::int64_t partial = joins ? cover.joined() : std::ssize(cover.partial());
  return {cover.full_sub_tiles() / 2, partial / 2, partial % 2};
}

/// One of how many stretches of `stretch` rows is sampled.
std::int64_t sample_step(const HeadView& view, std::int64_t stretch) {
  const std::int64_t stretches = ceil_div(view.rows, stretch);
  return std::max<std::int64_t>(1, stretches / (view.blocks ? kBlockSamples : kSamples));
}

/// Cycles per query head of the sampled rows with tiles of `pack` heads.
double sampled_cycles(const std::shared_ptr<const HeadView>& view, int pack, bool pairs, bool joins,
                      const cost::SliceForwardCycles& rates) {
  const std::int64_t stretch = kRowGroups * kGroupRows;
  const std::int64_t stretches = ceil_div(view->rows, stretch);
  const std::int64_t step = sample_step(*view, stretch);
  TileBands source(view);
  TileCover cover;
  std::int64_t cycles = 0;
  for (std::int64_t i = 0; i < stretches; i += step) {
    const std::int64_t end = std::min((i + 1) * stretch, view->rows);
    for (std::int64_t begin = i * stretch; begin < end; begin += stretch / pack) {
      const Range rows = {begin, std::min(begin + stretch / pack, end)};
      cover.cover(rows, source.advance(rows));
      const TileCounts counts = counts_of(cover, joins && !pairs);
      cycles += pairs ? counts.pair_cycles(rates) : counts.cycles(rates);
    }
  }
  return static_cast<double>(cycles) / pack;
}

/// Sub-tiles of a query tile alone.
std::int64_t sub_tiles_of(const TileCover& cover) {
  return cover.full_sub_tiles() + std::ssize(cover.partial());
}

/// What pairs of query tiles gain over single ones on the sampled rows, in cycles. In a pair a tile
/// visits about as many sub-tiles as alone, of which those that all rows of both see are full.
std::int64_t row_pair_gain(const std::shared_ptr<const HeadView>& view, int pack,
                           const cost::SliceForwardCycles& rates) {
  const std::int64_t tile = Tiling{pack}.tile_tokens();
  TileBands pairs(view);
  TileBands tiles(view);
  TileCover of_pair;
  TileCover of_tile;
  std::int64_t gain = 0;
  const std::int64_t step = 2 * tile * sample_step(*view, 2 * tile);
  for (std::int64_t begin = 0; begin < view->rows; begin += step) {
    const std::int64_t end = std::min(begin + 2 * tile, view->rows);
    of_pair.cover({begin, end}, pairs.advance({begin, end}));
    for (std::int64_t row = begin; row < begin + 2 * tile; row += tile) {
      TileCounts in_pair = {.full = of_pair.full_sub_tiles() / 2};
      if (row < end) {
        const Range rows = {row, std::min(row + tile, end)};
        of_tile.cover(rows, tiles.advance(rows));
        gain += counts_of(of_tile).cycles(rates);
        const std::int64_t others = sub_tiles_of(of_tile) - 2 * in_pair.full;
        in_pair.partial = std::max<std::int64_t>(others, 0) / 2;
        in_pair.narrow = std::max<std::int64_t>(others, 0) % 2;
      }
      gain -= in_pair.pair_cycles(rates);
    }
  }
  return gain;
}

/// Limits key tiles × pack in the backward pass, about the number of partial query tiles, for the
/// time of listing them: at a million tokens they waste too little to be worth it.
constexpr std::int64_t kMaxSmallTiles = 8192;

/// Query tiles [begin, end): from the first to the last that sees a key tile.
struct Span {
  std::int64_t begin = 0, end = 0;
};

Span span_of(const TransposedLists& lists, const KeyTile& tile) {
  if (tile.segments == 0) return {};
  const auto first = static_cast<std::size_t>(tile.segments_begin);
  const QuerySegment& last = lists.segments[first + static_cast<std::size_t>(tile.segments) - 1];
  return {last.q_tile, lists.segments[first].q_tile + lists.segments[first].count};
}

/// Whether CTAs of neighbouring key tiles come to most of the query tiles that they share at
/// different steps of their walks, which start at the last query tile of each.
bool walks_out_of_step(const Mask& mask) {
  const TransposedLists lists = make_transposed_lists(mask, 1, {.ctas = 1});
  std::int64_t visits = 0;
  std::int64_t out_of_step = 0;
  for (std::size_t i = 0; i + 1 < lists.tiles.size(); ++i) {
    const Span here = span_of(lists, lists.tiles[i]);
    const Span next = span_of(lists, lists.tiles[i + 1]);
    const std::int64_t common = std::min(here.end, next.end) - std::max(here.begin, next.begin);
    visits += lists.tiles[i].q_tiles;
    if (here.end != next.end) out_of_step += std::max<std::int64_t>(common, 0);
  }
  return 2 * out_of_step > visits;
}

}  // namespace

int shared_heads(int heads_q, int heads_k, int lists) {
  return std::gcd(heads_q / heads_k, heads_q / lists);
}

bool pairs_fit(int group_size, int pack, int head_dim) {
  return clusters_fit(head_dim) && group_size % (2 * pack) == 0;
}

int choose_pack(const Mask& mask, int group_size, int head_dim, bool joins,
                const cost::Platform& platform) {
  const cost::SliceForwardCycles& rates = platform.slice.forward;
  if (group_size % 2 != 0) return 1;
  const auto view = std::make_shared<const HeadView>(HeadView::of(mask, 0));
  const auto fits = [&](int pack) {
    return group_size % pack == 0 && mask.q_tokens() * pack <= kMaxTiles * kRowGroups * kGroupRows;
  };
  std::array<double, kPacks.size()> cycles{};
  double min_cycles = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < kPacks.size(); ++i) {
    if (i > 0 && !fits(kPacks[i])) continue;
    const bool pairs = pairs_fit(group_size, kPacks[i], head_dim);
    cycles[i] = sampled_cycles(view, kPacks[i], pairs, joins && view->blocks, rates);
    min_cycles = std::min(min_cycles, cycles[i]);
  }
  for (std::size_t i = 1; i < kPacks.size() && cycles[0] > rates.min_pack_gain * min_cycles; ++i) {
    if (fits(kPacks[i]) && cycles[i] <= rates.min_pack_gain * min_cycles) return kPacks[i];
  }
  return 1;
}

Tiling choose_tiling(const Mask& mask, int group_size, int head_dim, bool joins,
                     const cost::Platform& platform) {
  Tiling tiling = {.pack = choose_pack(mask, group_size, head_dim, joins, platform)};
  const bool pairs = pairs_fit(group_size, tiling.pack, head_dim);
  tiling.joins = joins && mask.blocks() != nullptr && !pairs;
  if (!clusters_fit(head_dim) || pairs || mask.blocks() != nullptr) return tiling;
  const auto view = std::make_shared<const HeadView>(HeadView::of(mask, 0));
  tiling.row_pairs = row_pair_gain(view, tiling.pack, platform.slice.forward) > 0;
  return tiling;
}

int forward_section_heads(std::int64_t tokens_k, const DimPair& dims, int heads_k,
                          std::int64_t cache_bytes) {
  const std::int64_t head_bytes =
      std::max<std::int64_t>(1, tokens_k * (dims.head_dim + dims.value_dim) * 2);
  auto heads = static_cast<int>(std::clamp<std::int64_t>(cache_bytes / 2 / head_bytes, 1, heads_k));
  while (heads_k % heads != 0) --heads;
  return heads;
}

int choose_backward_pack(const Mask& mask, int group_size) {
  int pack = 8;
  while (group_size % pack != 0) pack /= 2;
  if (mask.blocks() != nullptr) return pack;
  while (pack > 1 && mask.k_tokens() / kTileKeys * pack > kMaxSmallTiles) pack /= 2;
  return pack == 1 || walks_out_of_step(mask) ? 1 : pack;
}

}  // namespace longca::slice
