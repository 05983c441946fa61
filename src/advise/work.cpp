#include "advise/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "advise/touched_tiles.h"
#include "mask/convert.h"
#include "mask/generators.h"
#include "mask/tiles.h"

namespace longca::advise {
namespace {

/// Heads of a block-sparse mask whose tiles are counted; the others are drawn alike.
constexpr int kCountedHeads = 4;
/// Products of matrices with which a tile's dK and dV are computed, and its dQ.
constexpr double kKeyProducts = 4;
constexpr double kQueryProducts = 3;

/// Tile slots that `sms` SMs leave idle while they take the items, `copies` times over, in their
/// order.
double idle_slots(const std::vector<double>& items, std::int64_t copies, std::int64_t sms) {
  if (sms <= 1 || items.empty()) return 0;
  std::vector<double> ends(static_cast<std::size_t>(sms), 0.0);  // a heap, the earliest in front
  double busy = 0;
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    for (const double item : items) {
      std::ranges::pop_heap(ends, std::greater{});
      ends.back() += item;
      std::ranges::push_heap(ends, std::greater{});
      busy += item;
    }
  }
  return *std::ranges::max_element(ends) * static_cast<double>(sms) - busy;
}

/// The same if the longest come first, those of all copies.
double idle_longest_first(std::vector<double> items, std::int64_t copies, std::int64_t sms) {
  if (sms <= 1) return 0;
  std::ranges::sort(items, std::greater{});
  std::vector<double> all;
  for (const double item : items) all.insert(all.end(), static_cast<std::size_t>(copies), item);
  return idle_slots(all, 1, sms);
}

/// The tiles of one head.
struct HeadTiles {
  TileCount count;
  std::vector<double> rows, columns;  ///< tiles of each tile row and column that has some
};

std::vector<double> tiles_by_row(const TileRuns& tiles) {
  std::vector<double> rows;
  for (std::int64_t row = 0; row < tiles.rows(); ++row) {
    double count = 0;
    for (const TileRun& run : tiles.row(row)) count += run.end - run.begin;
    if (count > 0) rows.push_back(count);
  }
  return rows;
}

TileCount count_tiles(const TileRuns& tiles) {
  TileCount count;
  for (const TileRun& run : tiles.runs) {
    (run.tile_class == TileClass::full ? count.full : count.partial) += run.end - run.begin;
  }
  return count;
}

HeadTiles tiles_of_head(const Mask& mask, int head) {
  const TileRuns tiles = tile_runs(mask, head, kWorkTile, kWorkTile);
  return {count_tiles(tiles), tiles_by_row(tiles),
          tiles_by_row(transposed_tile_runs(mask, head, kWorkTile, kWorkTile))};
}

/// Items of a KV head for GroupGradients::of_group, in tiles of a backward pass.
std::vector<double> group_items(const HeadTiles& tiles, int group) {
  constexpr double kProducts = kKeyProducts + kQueryProducts;
  std::vector<double> items;
  for (const double column : tiles.columns)
    items.push_back(column * group * kKeyProducts / kProducts);
  for (int head = 0; head < group; ++head) {
    for (const double row : tiles.rows) items.push_back(row * kQueryProducts / kProducts);
  }
  return items;
}

void add(TileCount& sum, const TileCount& count, double times) {
  sum.full += times * count.full;
  sum.partial += times * count.partial;
}

/// Tiles of grids of their own, slice by slice.
void count_slices(const Mask& mask, int heads_q, std::int64_t sms, Work& work) {
  std::map<std::tuple<std::int64_t, std::int64_t, MaskSliceType>, TileCount> known;
  std::vector<double> items;
  for (const MaskSlice& slice : mask.slices()) {
    const std::int64_t rows = slice.q_end - slice.q_begin;
    const std::int64_t keys = slice.k_end - slice.k_begin;
    if (rows <= 0 || keys <= 0) continue;
    const auto [found, is_new] = known.try_emplace({rows, keys, slice.type});
    if (is_new) {
      const Mask alone = Mask::from_slices(rows, keys, {{0, rows, 0, keys, slice.type}});
      found->second = count_tiles(tile_runs(alone, 0, kWorkTile, kWorkTile));
    }
    add(work.slice_tiles, found->second, heads_q);
    items.push_back(found->second.full + found->second.partial);
  }
  work.idle.slices = idle_slots(items, heads_q, sms);
}

void count_documents(const Mask& mask, int heads_q, Work& work) {
  if (work.form != MaskForm::documents) return;
  const std::vector<std::int64_t> bounds = document_form(mask)->cu_seqlens;
  std::int64_t all = 0, longest = 0;
  for (std::size_t i = 1; i < bounds.size(); ++i) {
    const std::int64_t rows = (bounds[i] - bounds[i - 1] + kWorkTile - 1) / kWorkTile;
    all += rows;
    longest = std::max(longest, rows);
  }
  const auto documents = static_cast<std::int64_t>(bounds.size()) - 1;
  work.documents = static_cast<double>(documents);
  work.empty_tile_rows = static_cast<double>((documents * longest - all) * heads_q);
}

MaskForm form_of(const Mask& mask) {
  if (mask.blocks() != nullptr) return MaskForm::blocks;
  if (const auto window = window_form(mask)) {
    const bool is_causal = window->right == 0;
    if (window->left < 0 && (is_causal || window->right < 0)) {
      return is_causal ? MaskForm::causal : MaskForm::full;
    }
    return is_causal ? MaskForm::causal_window : MaskForm::window;
  }
  return document_form(mask) ? MaskForm::documents : MaskForm::other;
}

/// Whether blocks differ in size, other than that the last one is cut.
bool is_uneven(const std::vector<std::int64_t>& bounds) {
  for (std::size_t i = 2; i < bounds.size(); ++i) {
    const std::int64_t size = bounds[i] - bounds[i - 1];
    if (size > bounds[1] || (size < bounds[1] && i + 1 < bounds.size())) return true;
  }
  return false;
}

double most_key_intervals(const Mask& mask) {
  std::size_t most = 1;
  for_each_row(mask, 0, [&](std::int64_t, const std::vector<Range>& keys) {
    most = std::max(most, keys.size());
  });
  return static_cast<double>(most);
}

Work count_work(const Case& c, const Mask& mask, std::int64_t sms) {
  Work work;
  work.form = form_of(mask);
  count_documents(mask, c.heads_q, work);
  work.uneven_blocks = mask.blocks() != nullptr &&
                       (is_uneven(mask.blocks()->q_bounds) || is_uneven(mask.blocks()->k_bounds));
  const int counted = std::min(mask.heads(), kCountedHeads);
  for (int i = 0; i < counted; ++i) {
    HeadTiles head = tiles_of_head(mask, i * mask.heads() / counted);
    add(work.tiles, head.count, static_cast<double>(c.heads_q) / counted);
    if (i > 0) continue;
    work.idle.tile_rows = idle_slots(head.rows, c.heads_q, sms);
    work.idle.tile_columns = idle_slots(head.columns, c.heads_q, sms);
    work.idle.longest_rows = idle_longest_first(head.rows, c.heads_q, sms);
    const int group = c.heads_q / c.heads_k;
    work.idle.group_gradients = idle_slots(group_items(head, group), c.heads_k, sms);
    for (double& column : head.columns) column *= group;
    work.idle.grouped_columns = idle_slots(head.columns, c.heads_k, sms);
  }
  if (work.form == MaskForm::other) {
    work.key_intervals = most_key_intervals(mask);
    work.tested_tiles = work.tiles.partial;
  }
  count_slices(mask, c.heads_q, sms, work);
  const std::int64_t tile_rows = (c.tokens + kWorkTile - 1) / kWorkTile;
  const auto side = static_cast<double>(tile_rows);
  work.square_tiles = side * side * c.heads_q;
  work.rows = static_cast<double>(c.tokens) * c.heads_q;
  work.keys = static_cast<double>(c.tokens) * c.heads_k;
  work.cells = mask.mean_area() * c.heads_q;
  return work;
}

}  // namespace

double Work::density() const {
  const double square = square_tiles * kWorkTile * kWorkTile;
  return square > 0 ? cells / square : 0;
}

double Work::partial_share() const {
  const double all = tiles.full + tiles.partial;
  return all > 0 ? tiles.partial / all : 0;
}

Work Work::of_all_tiles() const {
  Work work = *this;
  work.tiles = work.slice_tiles = {square_tiles, 0};
  work.tested_tiles = 0;
  work.cells = square_tiles * kWorkTile * kWorkTile;
  return work;
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
  if (const auto found = works_.find(key); found != works_.end()) return found->second;
  return works_.emplace(key, count_work(c, mask(c), sms_)).first->second;
}

double MaskFacts::touched_tiles(const Case& c, const TileShape& shape) {
  const std::string key =
      fmt::format("{}\n{} {} {}", c.problem_key(), shape.rows, shape.keys, shape.packed_heads);
  if (const auto found = touched_.find(key); found != touched_.end()) return found->second;
  const Mask& of = mask(c);
  const int shared = std::gcd(c.heads_q / c.heads_k, c.heads_q / of.heads());
  const std::int64_t queries = shape.rows / std::gcd(shared, shape.packed_heads);
  const int counted = std::min(of.heads(), kCountedHeads);
  double tiles = 0;
  for (int i = 0; i < counted; ++i) {
    const std::int64_t count =
        count_touched_tiles(of, i * of.heads() / counted, queries, shape.keys);
    tiles += static_cast<double>(count) * c.heads_q / counted;
  }
  const double area = tiles * static_cast<double>(queries * shape.keys) / (kWorkTile * kWorkTile);
  return touched_.emplace(key, area).first->second;
}

PlannedCall MaskFacts::planned(const Case& c) {
  if (c.kernel != "slice" || c.device != "cuda" || c.block) return {};
  if (c.pass == Pass::step) {
    Case part = c;
    part.pass = Pass::forward;
    const double forward_ms = planned(part).ms;
    part.pass = Pass::backward;
    const PlannedCall backward = planned(part);
    return {forward_ms + backward.ms, backward.bytes};
  }
  const std::string key = c.problem_key() + "\n" + std::string(to_string(c.pass));
  if (const auto found = planned_.find(key); found != planned_.end()) return found->second;
  const auto pass = c.pass == Pass::forward ? cost::Pass::forward : cost::Pass::backward;
  const cost::HeadShape shape{.heads_q = c.heads_q, .heads_k = c.heads_k, .head_dim = c.head_dim};
  PlannedCall planned{1e3 * times_.slowed(times_.seconds(mask(c), shape, pass), pass)};
  if (pass == cost::Pass::backward) planned.bytes = times_.sum_bytes(mask(c), shape);
  return planned_.emplace(key, planned).first->second;
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
