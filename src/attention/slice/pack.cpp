#include "attention/slice/pack.h"

#include <algorithm>
#include <array>
#include <memory>

#include "attention/slice/tile_bands.h"
#include "attention/slice/tile_cost.h"
#include "attention/slice/tile_cover.h"
#include "attention/slice/tile_lists.h"

namespace longca::slice {
namespace {

constexpr std::array kPacks = {1, 2, 4, 8};
/// Larger packs have more and so longer lists to make, and where the tiles are the same (windows
/// of 1K), packs of 8 took 1.5 % longer on an H200: they must be worth it.
constexpr double kNearlyLeast = 1.015;
/// Stretches of 128 tokens that are looked at, evenly spread; the rows of block lists, each with
/// many keys, are much alike.
constexpr std::int64_t kSamples = 256;
constexpr std::int64_t kBlockSamples = 16;

TileCounts counts_of(const TileCover& cover) {
  const auto listed = static_cast<std::int64_t>(cover.listed().size());
  return {cover.full_halves() / 2, listed / 2, listed % 2};
}

/// Cycles per query head of the sampled rows with tiles of `pack` heads.
double sampled_cycles(const std::shared_ptr<const HeadView>& view, int pack) {
  const std::int64_t stretch = kRowGroups * kGroupRows;
  const std::int64_t stretches = (view->rows + stretch - 1) / stretch;
  const std::int64_t step =
      std::max<std::int64_t>(1, stretches / (view->blocks ? kBlockSamples : kSamples));
  TileBands source(view);
  TileCover cover;
  std::int64_t cycles = 0;
  for (std::int64_t i = 0; i < stretches; i += step) {
    const std::int64_t end = std::min((i + 1) * stretch, view->rows);
    for (std::int64_t begin = i * stretch; begin < end; begin += stretch / pack) {
      const Range rows = {begin, std::min(begin + stretch / pack, end)};
      cover.cover(rows, source.advance(rows));
      cycles += counts_of(cover).cycles();
    }
  }
  return static_cast<double>(cycles) / pack;
}

}  // namespace

int choose_pack(const Mask& mask, int group_size) {
  if (group_size % 2 != 0) return 1;
  const auto view = std::make_shared<const HeadView>(HeadView::of(mask, 0));
  std::array<double, kPacks.size()> cycles{};
  double least = 0;
  for (std::size_t i = 0; i < kPacks.size(); ++i) {
    if (group_size % kPacks[i] != 0) continue;
    cycles[i] = sampled_cycles(view, kPacks[i]);
    if (i == 0 || cycles[i] < least) least = cycles[i];
  }
  for (std::size_t i = 0; i < kPacks.size(); ++i) {
    if (group_size % kPacks[i] == 0 && cycles[i] <= kNearlyLeast * least) return kPacks[i];
  }
  return 1;
}

}  // namespace longca::slice
