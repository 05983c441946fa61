#include "advise/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "mask/generators.h"
#include "mask/tiles.h"

namespace longca::advise {
namespace {

/// Heads of a block-sparse mask whose tiles are counted; the others are drawn alike.
constexpr int kCountedHeads = 4;

void count_head(const Mask& mask, int head, Work& work) {
  const TileRuns tiles = tile_runs(mask, head, kWorkTile, kWorkTile);
  for (std::int64_t row = 0; row < tiles.rows(); ++row) {
    double row_tiles = 0;
    for (const TileRun& run : tiles.row(row)) {
      const double count = run.end - run.begin;
      (run.tile_class == TileClass::full ? work.full_tiles : work.partial_tiles) += count;
      row_tiles += count;
    }
    work.longest_row = std::max(work.longest_row, row_tiles);
  }
}

Work count_work(const Case& c, const Mask& mask) {
  Work work;
  const int counted = std::min(mask.heads(), kCountedHeads);
  for (int i = 0; i < counted; ++i) count_head(mask, i * mask.heads() / counted, work);
  const double heads = c.heads_q;
  work.full_tiles *= heads / counted;
  work.partial_tiles *= heads / counted;
  const std::int64_t tile_rows = (c.tokens + kWorkTile - 1) / kWorkTile;
  const auto side = static_cast<double>(tile_rows);
  work.square_tiles = side * side * heads;
  work.rows = static_cast<double>(c.tokens) * heads;
  work.keys = static_cast<double>(c.tokens) * c.heads_k;
  work.cells = mask.mean_area() * heads;
  return work;
}

}  // namespace

double Work::density() const {
  const double square = square_tiles * kWorkTile * kWorkTile;
  return square > 0 ? cells / square : 0;
}

double Work::partial_share() const {
  const double tiles = full_tiles + partial_tiles;
  return tiles > 0 ? partial_tiles / tiles : 0;
}

const Mask& MaskFacts::mask(const Case& c) {
  std::string key = c.problem_key();
  if (!last_ || last_->first != key) {
    last_.emplace(std::move(key), generate_mask(c.mask_spec()).mask);
  }
  return last_->second;
}

const Work& MaskFacts::work(const Case& c) {
  const std::string key = c.problem_key();
  const auto found = works_.find(key);
  if (found != works_.end()) return found->second;
  return works_.emplace(key, count_work(c, mask(c))).first->second;
}

const std::string& MaskFacts::refusal(const Kernel& kernel, const Case& c) {
  const Problem problem = c.problem();
  const std::string key = fmt::format("{}\n{}{}\n{}", kernel.capabilities().name, problem.backward,
                                      problem.deterministic, c.problem_key());
  if (const auto found = refusals_.find(key); found != refusals_.end()) return found->second;
  Support support = check_problem(kernel.capabilities(), problem, mask(c));
  if (support.ok()) support = kernel.can_express(problem, mask(c));
  return refusals_.emplace(key, support.reason).first->second;
}

}  // namespace longca::advise
