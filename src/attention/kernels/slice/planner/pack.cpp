#include "attention/kernels/slice/planner/pack.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>

#include "attention/kernels/slice/planner/tile_bands.h"
#include "attention/kernels/slice/planner/tile_cost.h"
#include "attention/kernels/slice/planner/tile_cover.h"
#include "attention/kernels/slice/planner/tile_lists.h"

namespace longca::slice {
namespace {

constexpr std::array kPacks = {1, 2, 4, 8};
/// Query tiles whose lists a core makes in 10 ms whatever the mask: larger packs have more.
constexpr std::int64_t kMaxTiles = 32 * 1024;
/// Larger packs have more and so longer lists to make, and where the tiles are the same (windows
/// of 1K), packs of 8 took 1.5 % longer on an H200: they must be worth it.
constexpr double kNearlyLeast = 1.015;
/// Stretches of 128 tokens that are looked at, evenly spread; the rows of block lists, each with
/// many keys, are much alike.
constexpr std::int64_t kSamples = 256;
constexpr std::int64_t kBlockSamples = 16;

TileCounts counts_of(const TileCover& cover) {
  const auto partial = static_cast<std::int64_t>(cover.partial().size());
  return {cover.full_sub_tiles() / 2, partial / 2, partial % 2};
}

/// Cycles per query head of the sampled rows with tiles of `pack` heads.
double sampled_cycles(const std::shared_ptr<const HeadView>& view, int pack, bool pairs) {
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
      const TileCounts counts = counts_of(cover);
      cycles += pairs ? counts.pair_cycles() : counts.cycles();
    }
  }
  return static_cast<double>(cycles) / pack;
}

}  // namespace

bool pairs_fit(int group_size, int pack) {
  return group_size % (2 * pack) == 0;
}

int choose_pack(const Mask& mask, int group_size) {
  if (group_size % 2 != 0) return 1;
  const auto view = std::make_shared<const HeadView>(HeadView::of(mask, 0));
  const auto fits = [&](int pack) {
    return group_size % pack == 0 && mask.q_tokens() * pack <= kMaxTiles * kRowGroups * kGroupRows;
  };
  std::array<double, kPacks.size()> cycles{};
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < kPacks.size(); ++i) {
    if (i > 0 && !fits(kPacks[i])) continue;
    cycles[i] = sampled_cycles(view, kPacks[i], pairs_fit(group_size, kPacks[i]));
    least = std::min(least, cycles[i]);
  }
  for (std::size_t i = 1; i < kPacks.size() && cycles[0] > kNearlyLeast * least; ++i) {
    if (fits(kPacks[i]) && cycles[i] <= kNearlyLeast * least) return kPacks[i];
  }
  return 1;
}

}  // namespace longca::slice
