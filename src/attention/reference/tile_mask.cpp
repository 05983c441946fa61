#include "attention/reference/tile_mask.h"

#include <algorithm>

namespace longca {
namespace {

/// The intervals of every token of a tile; tokens past the end have none.
std::array<std::vector<Range>, kTile> lane_intervals(const Mask& mask, int mask_head,
                                                     TileOwner owner, std::int64_t tile) {
  const bool queries = owner == TileOwner::queries;
  const std::int64_t first = tile * kTile;
  const std::int64_t tokens = queries ? mask.q_tokens() : mask.k_tokens();
  std::array<std::vector<Range>, kTile> lanes;
  for (std::int64_t i = 0; i < std::min(kTile, tokens - first); ++i) {
    lanes[i] = queries ? mask.key_intervals(mask_head, first + i)
                       : mask.query_intervals(mask_head, first + i);
  }
  return lanes;
}

/// Splits intervals at tile boundaries: visit(partner tile, begin, end), tokens relative to the
/// tile.
template <typename Visit>
void for_pieces(const std::vector<Range>& intervals, const Visit& visit) {
  for (const Range& range : intervals) {
    for (std::int64_t tile = range.begin / kTile; tile * kTile < range.end; ++tile) {
      const std::int64_t begin = std::max(range.begin - tile * kTile, std::int64_t{0});
      visit(tile, begin, std::min(range.end - tile * kTile, kTile));
    }
  }
}

/// Allowed cells per partner tile.
std::vector<std::int32_t> count_cells(const Mask& mask, TileOwner owner,
                                      const std::array<std::vector<Range>, kTile>& lanes) {
  const std::int64_t tokens = owner == TileOwner::queries ? mask.k_tokens() : mask.q_tokens();
  std::vector<std::int32_t> cells(static_cast<std::size_t>(tile_count(tokens)));
  for (const auto& lane : lanes) {
    for_pieces(lane, [&](std::int64_t tile, std::int64_t begin, std::int64_t end) {
      cells[tile] += static_cast<std::int32_t>(end - begin);
    });
  }
  return cells;
}

constexpr std::uint64_t lane_bits(std::int64_t begin, std::int64_t end) {
  const std::uint64_t below_end = end == kTile ? ~std::uint64_t{0} : (std::uint64_t{1} << end) - 1;
  return below_end & (~std::uint64_t{0} << begin);
}

}  // namespace

TileMask TileMask::make(const Mask& mask, int mask_head, TileOwner owner, std::int64_t tile) {
  const auto lanes = lane_intervals(mask, mask_head, owner, tile);
  const std::vector<std::int32_t> cells = count_cells(mask, owner, lanes);
  TileMask result;
  std::vector<std::int64_t> bits_of(cells.size(), -1);
  for (std::size_t t = 0; t < cells.size(); ++t) {
    if (cells[t] == 0) continue;
    if (cells[t] < kTile * kTile) {
      bits_of[t] = static_cast<std::int64_t>(result.bits.size());
      result.bits.push_back({});
    }
    result.partners.push_back({static_cast<std::int64_t>(t), bits_of[t]});
  }
  for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
    for_pieces(lanes[lane], [&](std::int64_t t, std::int64_t begin, std::int64_t end) {
      if (bits_of[t] >= 0) result.bits[bits_of[t]][lane] |= lane_bits(begin, end);
    });
  }
  return result;
}

std::int64_t count_partners(const Mask& mask, int mask_head, TileOwner owner, std::int64_t tile) {
  const auto cells = count_cells(mask, owner, lane_intervals(mask, mask_head, owner, tile));
  return std::ranges::count_if(cells, [](std::int32_t n) { return n > 0; });
}

}  // namespace longca
