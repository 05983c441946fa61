#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/record/record.h"
#include "report/data/time_interval.h"
#include "report/format.h"

namespace longca {

/// Records in reading order: what tables, Markdown, HTML and plots start from. Pointers are to the
/// records given, which must outlive the view.
///
///     sections   one per setting of the axes (and machine, build and host: facets.h) that take
///                several values for one mask and length; older cells of a case last
///       groups   one per mask and length: cells of equal work
///         rows   one per kernel: its forward cell, its backward cell and that of the step
///
/// Cells over ranks (`longca cp`) have a view of their own, in which a group has one number of
/// ranks and a row is a scheme with its shard, factor and transport.

/// One kernel's cells of a group; nullptr where there is no record.
struct ViewRow {
  std::string kernel;
  std::string scheme;  ///< SchemeNames::row over ranks, else empty
  std::array<const Record*, std::size(kPasses)> passes{};  ///< by Pass; nullptr: none
  std::array<std::optional<TimeInterval>, std::size(kPasses)> intervals{};  ///< of their times

  /// Takes the record as the cell of its pass.
  void set(const Record& record);
  const Record* pass(Pass p) const { return passes[static_cast<std::size_t>(p)]; }
  const std::optional<TimeInterval>& interval(Pass p) const {
    return intervals[static_cast<std::size_t>(p)];
  }
  /// The case of one of the passes, for what they have in common.
  const Case& c() const {
    return (*std::ranges::find_if(passes, [](const Record* pass) { return pass != nullptr; }))->c;
  }
};

struct ViewGroup {
  std::string mask;
  std::int64_t tokens = 0;
  int ranks = 0;      ///< 0 on one device
  AxisTexts setting;  ///< facets that vary between groups, but not inside one
  std::vector<ViewRow> rows;

  /// "sliding_window (window 512)".
  std::string title() const;
};

struct ViewSection {
  AxisTexts setting;  ///< what distinguishes this section; empty if there is only one
  std::vector<ViewGroup> groups;
};

struct View {
  bool over_ranks = false;
  AxisTexts common;  ///< axes with the same value in all cells that have them
  std::vector<ViewSection> sections;
  std::vector<std::string> kernels;  ///< in order of first appearance
  std::vector<std::string> schemes;  ///< in order of first appearance; none on one device
  std::map<StatusCode, int> status_counts;
  RateUnit unit;           ///< of all rates
  bool has_draws = false;  ///< some record is the mean of several draws (data/draws.h)
  std::array<bool, std::size(kPasses)> has_pass{};

  bool has(Pass pass) const { return has_pass[static_cast<std::size_t>(pass)]; }
  int cells() const;
  /// All records, in the view's order.
  std::vector<const Record*> records() const;
};

/// The last record of each case, machine and build, those of several seeds as one (data/draws.h),
/// cells on one device apart from cells over ranks; the user's own files by their short names
/// (shorten_own_names).
struct SplitRecords {
  std::vector<Record> single;
  std::vector<Record> over_ranks;
};
SplitRecords split_records(std::span<const Record> records);

/// Sorts masks as the table of masks does, lengths and ranks ascending, kernels, schemes and
/// settings by first appearance. The records are all `single` or all `over_ranks` (split_records).
View make_view(std::span<const Record> records);

/// Index into the table of masks; its size for a mask that this program does not know.
std::size_t mask_index(const std::string& mask);

/// The metric if it was measured.
std::optional<double> metric_of(const Record* record, const std::string& name);
/// The largest relative error of the cell's outputs (O, or dQ, dK, dV), if it was verified.
std::optional<double> largest_error(const Record* record);
/// The largest over the row's passes, if any has it.
std::optional<double> largest_of(const ViewRow& row, const std::string& metric);
std::optional<double> largest_error(const ViewRow& row);
inline constexpr std::string_view kErrorLegend =
    "error   largest relative error of O, dQ, dK, dV against the float64 reference";
inline constexpr std::string_view kSpreadLegend =
    "spread  of several seeds, whose FLOPs and times are summed: standard deviation of their rates";
/// Over draws of several seeds, which are one row (data/draws.h): the largest of their spreads in
/// %.
std::optional<double> spread_of(const ViewRow& row);
/// Raises `largest` to the value if there is one.
void keep_larger(std::optional<double>& largest, const std::optional<double>& value);

/// What stands after a time: "?" where too few repetitions ran for a confidence interval, "~" where
/// the time limit came before it was narrow enough, else "".
inline constexpr std::string_view kNoIntervalMark = "?";
inline constexpr std::string_view kUnsettledMark = "~";
std::string_view interval_mark(const Record& record);

/// The peak of the pass that a table's memory is of: backward where the view has it, else a step's.
/// A row without that pass has none: the memory of two passes is not compared.
std::optional<double> memory_of(const View& view, const ViewRow& row);
/// That pass.
Pass memory_pass(const View& view);

/// Why cells have no number.
struct Reason {
  std::vector<std::string> kernels;  ///< over ranks with the scheme: "ulysses, flash"
  StatusCode code = StatusCode::ok;
  std::string sentence;  ///< of several kernels without their names: "runs on cuda, not on cpu"
  int cells = 0;         ///< that have this reason
};
/// Each distinct reason once, in order of first appearance. Sentences that differ only in the name
/// of the kernel, with which they begin, are one reason.
std::vector<Reason> collect_reasons(const View& view);
/// "sdpa, fa2"; over ranks "ulysses, flash; magi, flash".
std::string join_kernels(std::span<const std::string> kernels);

/// "16 cells: 12 ok, 3 unsupported, 1 oom".
std::string describe_counts(const View& view);

/// The first item that matches, or else `item`, appended.
template <typename Item, typename Matches>
Item& find_or_add(std::vector<Item>& items, Matches matches, Item item) {
  const auto found = std::find_if(items.begin(), items.end(), matches);
  return found != items.end() ? *found : items.emplace_back(std::move(item));
}

}  // namespace longca
