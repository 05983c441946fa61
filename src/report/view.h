#pragma once

#include <array>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/record/record.h"
#include "report/format.h"

namespace longca {

/// The records in the order in which people read them. Every view for people (table, Markdown,
/// HTML, plots) starts from this; pointers are to the records given, which must outlive it.
///
///     sections   one per setting of the axes that take several values for one mask and length
///       groups   one per mask and length: cells of equal work
///         rows   one per kernel: its forward and its backward cell
///
/// Cells over ranks (`longca cp`) are a view of their own: there a group is of one number of ranks
/// too, and a row is a scheme with its shard, factor and transport.

/// Axis names and values, in the order of the axis table.
using AxisTexts = std::vector<std::pair<std::string, std::string>>;

/// One kernel's cells of a group; nullptr where there is no record.
struct ViewRow {
  std::string kernel;
  std::string scheme;  ///< over ranks, as SchemeNames::row has it; else empty
  std::array<const Record*, 2> passes = {nullptr, nullptr};  ///< by Pass

  const Record* pass(Pass p) const { return passes[static_cast<std::size_t>(p)]; }
  /// Of either pass: what the row's cells have in common.
  const Case& c() const { return (passes[0] != nullptr ? passes[0] : passes[1])->c; }
};

struct ViewGroup {
  std::string mask;
  std::int64_t tokens = 0;
  int ranks = 0;      ///< 0 on one device
  AxisTexts setting;  ///< axes that vary between groups, but not inside one
  std::vector<ViewRow> rows;

  /// The fastest `ok` record of the pass; nullptr unless there are at least two to choose from.
  const Record* best(Pass pass) const;
};

struct ViewSection {
  AxisTexts setting;  ///< what sets this section apart; empty if nothing does
  std::vector<ViewGroup> groups;
};

struct View {
  bool over_ranks = false;
  AxisTexts common;  ///< axes with one value wherever they apply
  std::vector<ViewSection> sections;
  std::vector<std::string> kernels;  ///< in order of first appearance
  std::vector<std::string> schemes;  ///< likewise; none on one device
  std::map<StatusCode, int> status_counts;
  RateUnit unit;  ///< for all rates
  std::array<bool, 2> has_pass = {false, false};

  bool has(Pass pass) const { return has_pass[static_cast<std::size_t>(pass)]; }
  int cells() const;
};

/// Records of one key merged, the last one counting, and cells over ranks apart from those of one
/// device.
struct SplitRecords {
  std::vector<Record> single;
  std::vector<Record> over_ranks;
};
SplitRecords split_records(std::span<const Record> records);

/// Masks in DESIGN's order, lengths and ranks ascending, kernels, schemes and settings as they
/// first appear. The records are of one of the two kinds (split_records).
View make_view(std::span<const Record> records);

/// The metric if it was measured.
std::optional<double> metric_of(const Record* record, const std::string& name);
/// The largest relative error of the cell's outputs (O, or dQ, dK, dV), if it was verified.
std::optional<double> largest_error(const Record* record);

/// A reason why cells have no number, with how many it stopped.
struct Reason {
  std::string kernel;  ///< over ranks the scheme as well: "ulysses, flash"
  StatusCode code = StatusCode::ok;
  std::string sentence;
  int cells = 0;
};
/// Each distinct reason once, in order of first appearance.
std::vector<Reason> collect_reasons(const View& view);

/// The letter that stands in a plot for a cell without a number: X unsupported, E out of memory, as
/// in the published figures; "" for ok.
std::string_view status_mark(StatusCode code);
/// The status in words that need no explanation: "out of memory".
std::string_view status_words(StatusCode code);
/// The statuses that have a mark.
std::span<const StatusCode> marked_statuses();

/// "heads 8:2 · dim 128".
std::string join_axes(const AxisTexts& axes, std::string_view separator);
/// "16 cells: 12 ok, 3 unsupported, 1 oom".
std::string describe_counts(const View& view);
/// What the record ran on, from its environment: "NVIDIA H200" where its device is a GPU, else
/// "AMD EPYC 9R14, 2 cores"; or "".
std::string describe_machine(const Record& record);

}  // namespace longca
