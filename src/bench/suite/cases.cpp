#include "bench/suite/cases.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "core/error.h"
#include "mask/own_lengths.h"
#include "mask/own_mask.h"

namespace longca {
namespace {

constexpr std::int64_t kMaxCases = 1'000'000;
/// Where only some cells are wanted, so many points of the product are tried for each.
constexpr std::size_t kTriesPerCell = 50;
constexpr std::string_view kTokens = "tokens";
constexpr std::string_view kRanks = "ranks";
constexpr std::string_view kFactor = "factor";

/// One axis of the product with its values.
struct Dimension {
  const Axis* axis;
  std::vector<std::string> values;
  /// For each value how many it stands for, itself included; empty: for itself alone.
  std::vector<std::int64_t> stands_for{};
};

/// An axis's values in the product; none: it is not part of it.
std::vector<std::string> values_of(const Suite& suite, const Axis& axis) {
  const auto given = suite.axes.find(axis.name);
  if (given != suite.axes.end()) return given->second;
  if (axis.standard.empty()) return {};
  return axis.parse(axis.standard);
}

/// Axes from the slowest to the fastest: the number of ranks, those that shape a problem, the
/// others, so that cells come as they run; each in the order of the table. `tokens_per_rank` takes
/// the place of `tokens`.
std::vector<const Axis*> axes_of_product(const Suite& suite, bool over_ranks) {
  const bool per_rank = over_ranks && suite.axes.contains(kTokensPerRank);
  std::vector<const Axis*> axes;
  if (over_ranks) axes.push_back(&find_axis(kRanks));
  for (const bool of_problem : {true, false}) {
    for (const Axis& axis : axis_table()) {
      const bool is_elsewhere = axis.name == kRanks || (axis.over_ranks && !over_ranks) ||
                                (per_rank && axis.name == kTokens);
      if (!is_elsewhere && shapes_problem(axis) == of_problem) axes.push_back(&axis);
    }
    if (of_problem && per_rank) axes.push_back(&find_axis(kTokensPerRank));
  }
  return axes;
}

std::vector<Dimension> dimensions_of(const Suite& suite, bool over_ranks) {
  std::vector<Dimension> dimensions;
  std::int64_t product = 1;
  for (const Axis* axis : axes_of_product(suite, over_ranks)) {
    std::vector<std::string> values = values_of(suite, *axis);
    if (values.empty()) continue;
    product *= static_cast<std::int64_t>(values.size());
    dimensions.push_back({axis, std::move(values)});
    if (product > kMaxCases) {
      throw_input_error("suite '{}' is a product of more than {} cells", suite.name, kMaxCases);
    }
  }
  return dimensions;
}

bool matches(const Case& c, const AxisValues& when) {
  return std::ranges::all_of(when, [&](const auto& condition) {
    const auto value = full_text(find_axis(condition.first), c);
    return value && std::ranges::find(condition.second, *value) != condition.second.end();
  });
}

/// Applies the exceptions in their order to `c`, which is `raw` with defaults filled in. Returns
/// the reason if one of them leaves the case out, or a mask of the user's own does not fit it.
std::string apply_exceptions(const Suite& suite, Case raw, Case& c, int ranks_per_node) {
  for (const SuiteException& exception : suite.exceptions) {
    if (!matches(c, exception.when)) continue;
    if (!exception.skip.empty()) return exception.skip;
    for (const auto& [name, values] : exception.set) find_axis(name).assign(raw, values.front());
    c = canonical(raw, ranks_per_node);
  }
  const OwnMask* own = find_own_mask(c.mask);
  return own == nullptr ? "" : misfit(*own, c.tokens, c.heads_q, c.heads_k);
}

/// Throws InputError if the user's own documents do not fill the sequence.
void check_lengths(const Case& c) {
  const OwnLengths* own = c.lengths ? find_own_lengths(*c.lengths) : nullptr;
  if (own != nullptr) require_tokens(*own, *c.lengths, c.tokens);
}

/// Calls body(case, index of its value in every dimension) for the points of the product until it
/// returns false, the last axis running fastest. With `skips`, points are left out that differ from
/// others in an axis alone on which their mask does not depend.
template <typename Body>
void for_each_point(const std::vector<Dimension>& dimensions, bool skips, const Body& body) {
  std::vector<std::size_t> index(dimensions.size(), 0);
  while (true) {
    Case c;
    for (std::size_t i = 0; i < dimensions.size(); ++i) {
      dimensions[i].axis->assign(c, dimensions[i].values[index[i]]);
    }
    const MaskTraits& mask = mask_traits(c.mask);
    if (!body(std::move(c), index)) return;
    std::size_t i = dimensions.size();
    while (i > 0) {
      const Axis& axis = *dimensions[i - 1].axis;
      const bool applies = !skips || axis.applies == nullptr || axis.applies(mask);
      if (++index[i - 1] < (applies ? dimensions[i - 1].values.size() : 1)) break;
      index[--i] = 0;
    }
    if (i == 0) return;
  }
}

/// Whether an exception gives cells another mask, which then may depend on other axes.
bool sets_mask(const Suite& suite) {
  return std::ranges::any_of(suite.exceptions,
                             [](const SuiteException& e) { return e.set.contains("mask"); });
}

/// 1, 2, 4, … and `all`.
std::vector<std::string> doubled_up_to(int all) {
  std::vector<std::string> counts;
  for (int ranks = 1; ranks < all; ranks *= 2) counts.push_back(std::to_string(ranks));
  counts.push_back(std::to_string(all));
  return counts;
}

/// The suite with `found` written out: the device, and its numbers of ranks, ascending.
Suite with_found(const Suite& suite, const FoundRanks& found) {
  Suite result = suite;
  const auto devices = values_of(suite, find_axis("device"));
  int all = 1;
  for (const std::string& device : devices) {
    Case c;
    find_axis("device").assign(c, device);
    all = std::max(all, c.device == "cpu" ? found.cpu : found.cuda);
  }
  std::vector<std::string> ranks;
  for (const std::string& value : values_of(suite, find_axis("ranks"))) {
    const auto counts = value == kFound ? doubled_up_to(all) : std::vector{value};
    for (const auto& count : counts) {
      if (std::ranges::find(ranks, count) == ranks.end()) ranks.push_back(count);
    }
  }
  std::ranges::sort(ranks, {}, [](const std::string& count) { return std::stoll(count); });
  result.axes["ranks"] = std::move(ranks);
  return result;
}

/// Makes cells of one problem neighbours, keeping the order otherwise.
void group_by_problem(std::vector<Case>& cases) {
  std::unordered_map<std::string, std::size_t> order;
  std::vector<std::pair<std::size_t, Case>> keyed;
  for (Case& c : cases) {
    const std::size_t rank = order.try_emplace(c.problem_key(), order.size()).first->second;
    keyed.emplace_back(rank, std::move(c));
  }
  std::ranges::stable_sort(keyed, {}, [](const auto& entry) { return entry.first; });
  cases.clear();
  for (auto& [rank, c] : keyed) cases.push_back(std::move(c));
}

CaseList expand_product(const Suite& suite, bool over_ranks, int ranks_per_node,
                        std::size_t max_cells) {
  CaseList list;
  std::unordered_set<std::string> seen;
  std::size_t tries = max_cells == kAllCases ? kAllCases : max_cells * kTriesPerCell;
  const auto add = [&](const Case& raw, const auto& /*index*/) {
    Case c = canonical(raw, ranks_per_node);
    const std::string reason = apply_exceptions(suite, raw, c, ranks_per_node);
    if (!seen.insert(c.key()).second) return true;
    if (reason.empty()) {
      check_lengths(c);
      list.cases.push_back(std::move(c));
    } else {
      list.skipped.push_back({std::move(c), reason});
    }
    return list.cases.size() < max_cells && --tries > 0;
  };
  for_each_point(dimensions_of(suite, over_ranks), !sets_mask(suite), add);
  if (list.cases.empty() && tries > 0) {
    throw_input_error("suite '{}' has no cell: all {} are left out ({})", suite.name,
                      list.skipped.size(), list.skipped.front().reason);
  }
  group_by_problem(list.cases);
  return list;
}

/// Whether a mask of the user's own is among the suite's, which fits some lengths and heads only.
bool has_own_mask(const Suite& suite) {
  const auto is_own = [](const std::string& mask) { return find_own_mask(mask) != nullptr; };
  return std::ranges::any_of(values_of(suite, find_axis("mask")), is_own);
}

/// Which axes are free: their value says all that it does to a case, which no other axis changes or
/// is changed by, in `canonical` or by an exception that sets it. Exceptions may apply to some
/// values only.
class FreeAxes {
 public:
  FreeAxes(const Suite& suite, bool over_ranks)
      : suite_(suite), over_ranks_(over_ranks), has_own_mask_(longca::has_own_mask(suite)) {}

  bool has(const Axis& axis) const {
    const std::string_view name = axis.name;
    if (exceptions_set(name)) return false;
    if (name == "window") return !has_value(axis, "auto");  // which is one of the others
    if (name == "heads") return !has_own_mask_ && !decides_factor();
    if (name == kTokens) return !has_own_mask_ && !exceptions_name(kTokensPerRank);
    if (name == kFactor) return true;
    if (name == kRanks) return !decides_factor() && !decides_tokens();
    if (name == kTokensPerRank) return !decides_tokens();
    constexpr std::array<std::string_view, 4> kCoupled = {"mask", "pass", "deterministic",
                                                          "device"};
    return !axis.over_ranks && std::ranges::find(kCoupled, name) == kCoupled.end();
  }

 private:
  bool exceptions_set(std::string_view name) const {
    return std::ranges::any_of(suite_.exceptions, [&](const SuiteException& e) {
      return e.set.contains(std::string(name));
    });
  }
  bool exceptions_name(std::string_view name) const {
    return std::ranges::any_of(suite_.exceptions, [&](const SuiteException& e) {
      return e.set.contains(std::string(name)) || e.when.contains(std::string(name));
    });
  }
  bool has_value(const Axis& axis, std::string_view value) const {
    const auto values = values_of(suite_, axis);
    return std::ranges::find(values, value) != values.end();
  }
  /// Whether ranks and heads choose a factor that exceptions look at.
  bool decides_factor() const {
    return over_ranks_ && !suite_.axes.contains(std::string(kFactor)) && exceptions_name(kFactor);
  }
  /// Whether ranks and tokens per rank give a length that exceptions or masks look at, or keep.
  bool decides_tokens() const {
    if (exceptions_name(kTokensPerRank)) return true;
    return suite_.axes.contains(kTokensPerRank) &&
           (has_own_mask_ || exceptions_name(kTokens) || exceptions_set(kRanks));
  }

  const Suite& suite_;
  bool over_ranks_;
  bool has_own_mask_;
};

/// Of values that the same exceptions apply to, keeps the first, which stands for all.
void keep_one_of_alike(Dimension& dimension, const Suite& suite) {
  std::map<std::vector<bool>, std::size_t> classes;  // by the exceptions that take the value
  std::vector<std::unordered_set<std::string>> taken;
  for (const SuiteException& exception : suite.exceptions) {
    const auto condition = exception.when.find(dimension.axis->name);
    if (condition == exception.when.end()) continue;
    taken.emplace_back(condition->second.begin(), condition->second.end());
  }
  std::vector<std::string> kept;
  for (std::string& value : dimension.values) {
    std::vector<bool> by;
    for (const auto& values : taken) by.push_back(values.contains(value));
    const auto [known, is_new] = classes.try_emplace(std::move(by), kept.size());
    if (is_new) {
      kept.push_back(std::move(value));
      dimension.stands_for.push_back(0);
    }
    ++dimension.stands_for[known->second];
  }
  dimension.values = std::move(kept);
}

/// How many cells and problems a point of the product stands for.
struct Multiple {
  std::int64_t cells = 1;
  std::int64_t problems = 1;
};

Multiple multiple_of(const std::vector<Dimension>& dimensions, std::span<const std::size_t> index,
                     const Case& c) {
  const MaskTraits& mask = mask_traits(c.mask);
  Multiple multiple;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    const Dimension& dimension = dimensions[i];
    if (dimension.stands_for.empty()) continue;
    if (dimension.axis->applies != nullptr && !dimension.axis->applies(mask)) continue;
    if (dimension.axis->name == kFactor && !c.factor) continue;  // of other schemes
    multiple.cells *= dimension.stands_for[index[i]];
    if (shapes_problem(*dimension.axis)) multiple.problems *= dimension.stands_for[index[i]];
  }
  return multiple;
}

/// Makes the cells with one of every free axis's values that act alike, and multiplies.
SuiteSize size_of_product(const Suite& suite, bool over_ranks, int ranks_per_node) {
  std::vector<Dimension> dimensions = dimensions_of(suite, over_ranks);
  const FreeAxes free(suite, over_ranks);
  for (Dimension& dimension : dimensions) {
    if (free.has(*dimension.axis)) keep_one_of_alike(dimension, suite);
  }
  SuiteSize size;
  std::unordered_set<std::string> seen;
  std::unordered_set<std::string> problems;
  const auto count = [&](const Case& raw, std::span<const std::size_t> index) {
    Case c = canonical(raw, ranks_per_node);
    const std::string reason = apply_exceptions(suite, raw, c, ranks_per_node);
    if (!seen.insert(c.key()).second) return true;
    const Multiple multiple = multiple_of(dimensions, index, c);
    (reason.empty() ? size.cells : size.skipped[reason]) += multiple.cells;
    if (reason.empty() && problems.insert(c.problem_key()).second)
      size.problems += multiple.problems;
    return true;
  };
  for_each_point(dimensions, !sets_mask(suite), count);
  return size;
}

}  // namespace

CaseList expand(const Suite& suite, std::size_t max_cells) {
  return expand_product(suite, false, kRanksPerNode, max_cells);
}

SuiteSize size_of(const Suite& suite) {
  return size_of_product(suite, false, kRanksPerNode);
}

CaseList expand_over_ranks(const Suite& suite, const FoundRanks& found, std::size_t max_cells) {
  CaseList list = expand_product(with_found(suite, found), true, found.per_node, max_cells);
  std::ranges::stable_sort(list.cases, {}, [](const Case& c) { return c.ranks.value(); });
  return list;
}

SuiteSize size_over_ranks(const Suite& suite, const FoundRanks& found) {
  return size_of_product(with_found(suite, found), true, found.per_node);
}

}  // namespace longca
