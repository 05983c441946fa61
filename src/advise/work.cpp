#include "advise/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>
#include <vector>

#include "advise/touched_tiles.h"
#include "core/rounding.h"
#include "core/thread_pool.h"
#include "mask/convert.h"
#include "mask/generators.h"
#include "mask/tiles.h"

namespace longca::advise {
namespace {

/// Heads of a block-sparse mask whose tiles are counted; the others are drawn alike.
constexpr int kCountedHeads = 4;
/// Products of matrices with which a tile's dK and dV are computed, and its dQ.
constexpr std::int64_t kKeyProducts = 4;
constexpr std::int64_t kQueryProducts = 3;

/// What an SM takes at a time: tile slots, or equal parts of them.
using Items = std::vector<std::int64_t>;

/// Into so many parts the longest item is cut at the most.
constexpr std::int64_t kMaxParts = std::int64_t{1} << 20;

/// Slots that `sms` SMs leave idle while they take the items, `copies` times over, in their order.
std::int64_t idle_slots(const Items& items, std::int64_t copies, std::int64_t sms) {
  if (sms <= 1 || items.empty()) return 0;
  const std::int64_t longest = std::ranges::max(items);
  std::int64_t unit = 0;
  for (const std::int64_t item : items) unit = std::gcd(unit, item);
  unit = std::max(unit, longest / kMaxParts);
  const auto parts = [unit](std::int64_t item) {
    return static_cast<std::uint64_t>((item + unit / 2) / unit);
  };
  // SMs that are at work, by the time at which they end, modulo more than the longest item.
  std::vector<std::int64_t> ending(std::bit_ceil(parts(longest) + 1), 0);
  const std::uint64_t last = ending.size() - 1;
  ending[0] = sms;
  std::uint64_t now = 0, end = 0;
  std::int64_t busy = 0;
  for (std::int64_t copy = 0; copy < copies; ++copy) {
    for (const std::int64_t item : items) {
      while (ending[now & last] == 0) ++now;
      --ending[now & last];
      const std::uint64_t item_end = now + parts(item);
      ++ending[item_end & last];
      end = std::max(end, item_end);
      busy += item;
    }
  }
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(end) * unit * sms - busy);
}

/// The same if the longest come first, those of all copies.
std::int64_t idle_longest_first(Items items, std::int64_t copies, std::int64_t sms) {
  if (sms <= 1) return 0;
  std::ranges::sort(items, std::greater{});
  Items all;
  for (const std::int64_t item : items)
    all.insert(all.end(), static_cast<std::size_t>(copies), item);
  return idle_slots(all, 1, sms);
}

/// The tiles of one head.
struct HeadTiles {
  TileCount count;
  Items rows, columns;  ///< tiles of each tile row and column that has some
};

Items tiles_by_row(const TileRuns& tiles) {
  Items rows;
  for (std::int64_t row = 0; row < tiles.rows(); ++row) {
    std::int64_t count = 0;
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

/// Items of a KV head for GroupGradients::of_group, in products.
Items group_items(const HeadTiles& tiles, int group) {
  Items items;
  for (const std::int64_t column : tiles.columns) items.push_back(column * group * kKeyProducts);
  for (int head = 0; head < group; ++head) {
    for (const std::int64_t row : tiles.rows) items.push_back(row * kQueryProducts);
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
  Items items;
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
    const double tiles = found->second.full + found->second.partial;
    if (tiles > 0) items.push_back(static_cast<std::int64_t>(tiles));
  }
  work.idle.slices = static_cast<double>(idle_slots(items, heads_q, sms));
}

void count_documents(const Mask& mask, int heads_q, Work& work) {
  if (work.form != MaskForm::documents) return;
  const std::vector<std::int64_t> bounds = document_form(mask)->cu_seqlens;
  std::int64_t all = 0, longest = 0;
  for (std::size_t i = 1; i < bounds.size(); ++i) {
    const std::int64_t rows = ceil_div(bounds[i] - bounds[i - 1], kWorkTile);
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

/// All but those of slices.
IdleSlots idle_of(const HeadTiles& head, const Case& c, std::int64_t sms) {
  const auto slots = [&](const Items& items, int heads) {
    return static_cast<double>(idle_slots(items, heads, sms));
  };
  const int group = c.heads_q / c.heads_k;
  Items grouped = head.columns;
  for (std::int64_t& column : grouped) column *= group;
  return {.tile_rows = slots(head.rows, c.heads_q),
          .tile_columns = slots(head.columns, c.heads_q),
          .grouped_columns = slots(grouped, c.heads_k),
          .longest_rows = static_cast<double>(idle_longest_first(head.rows, c.heads_q, sms)),
          .group_gradients =
              slots(group_items(head, group), c.heads_k) / (kKeyProducts + kQueryProducts)};
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
    work.idle = idle_of(head, c, sms);
  }
  if (work.form == MaskForm::other) {
    work.key_intervals = most_key_intervals(mask);
    work.tested_tiles = work.tiles.partial;
  }
  count_slices(mask, c.heads_q, sms, work);
  const std::int64_t tile_rows = ceil_div(c.tokens, kWorkTile);
  const auto side = static_cast<double>(tile_rows);
  work.square_tiles = side * side * c.heads_q;
  work.rows = static_cast<double>(c.tokens) * c.heads_q;
  work.keys = static_cast<double>(c.tokens) * c.heads_k;
  work.cells = mask.mean_area() * c.heads_q;
  return work;
}

bool of_slice_without_blocks(const Case& c) {
  return c.kernel == "slice" && c.device == "cuda" && !c.block;
}

/// Whether a pass's lists are among what MaskFacts::planned_call can make.
bool has_known_lists(const Case& c) {
  return of_slice_without_blocks(c) && c.pass != Pass::step;
}

std::string planned_key(const Case& c) {
  return c.problem_key() + "\n" + std::string(to_string(c.pass));
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

void MaskFacts::prepare(std::span<const Case* const> cases) {
  struct Problem {
    const Case* first;
    std::optional<Work> work{};
    std::map<std::string, const Case*> unplanned{};  ///< by planned_key
    std::map<std::string, PlannedCall> planned{};
  };
  std::map<std::string, Problem> by_key;
  for (const Case* c : cases) {
    const std::string key = c->problem_key();
    const bool plans = has_known_lists(*c) && !planned_.contains(planned_key(*c));
    if (works_.contains(key) && !plans) continue;
    Problem& problem = by_key.try_emplace(key, Problem{c}).first->second;
    if (plans) problem.unplanned.emplace(planned_key(*c), c);
  }
  std::vector<std::pair<const std::string, Problem>*> problems;
  for (auto& problem : by_key) problems.push_back(&problem);
  ThreadPool::global().parallel_for(std::ssize(problems), [&](std::int64_t i, int) {
    auto& [key, problem] = *problems[static_cast<std::size_t>(i)];
    try {
      const Mask made = generate_mask(problem.first->mask_spec()).mask;
      if (!works_.contains(key)) problem.work = count_work(*problem.first, made, sms_);
      for (const auto& [name, c] : problem.unplanned)
        problem.planned[name] = planned_call(*c, made);
    } catch (const InputError&) {
      // A mask of another user's own file: who asks for it is told.
    }
  });
  for (auto& [key, problem] : by_key) {
    if (problem.work) works_.emplace(key, *problem.work);
    planned_.merge(problem.planned);
  }
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

PlannedCall MaskFacts::planned_call(const Case& c, const Mask& mask) const {
  const auto pass = c.pass == Pass::forward ? cost::Pass::forward : cost::Pass::backward;
  const cost::HeadShape shape{.heads_q = c.heads_q, .heads_k = c.heads_k, .head_dim = c.head_dim};
  PlannedCall planned{1e3 * times_.slowed(times_.seconds(mask, shape, pass), pass)};
  if (pass == cost::Pass::backward) planned.bytes = times_.sum_bytes(mask, shape);
  return planned;
}

PlannedCall MaskFacts::planned(const Case& c) {
  if (!of_slice_without_blocks(c)) return {};
  if (c.pass == Pass::step) {
    Case part = c;
    part.pass = Pass::forward;
    const double forward_ms = planned(part).ms;
    part.pass = Pass::backward;
    const PlannedCall backward = planned(part);
    return {forward_ms + backward.ms, backward.bytes};
  }
  const std::string key = planned_key(c);
  if (const auto found = planned_.find(key); found != planned_.end()) return found->second;
  return planned_.emplace(key, planned_call(c, mask(c))).first->second;
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
