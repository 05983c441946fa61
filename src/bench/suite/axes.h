#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/suite/case.h"
#include "mask/generators.h"

namespace longca {

/// One axis of the benchmark. The table of axes is the only place that knows them: suites, `-a`,
/// help, completion, keys and the record's "case" object all read it. A value travels as its
/// canonical text.
struct Axis {
  std::string name;    ///< as in `-a NAME=VALUES`
  std::string values;  ///< what a value looks like, for help: "COUNT", "HQ:HK", "NAME"
  std::string help;    ///< one line
  /// Value where neither the suite nor the command line gives one; "": `canonical` fills it in.
  std::string standard;
  /// The names of a closed set, which `all` stands for; nullptr for an open one.
  std::vector<std::string> (*names)() = nullptr;
  /// Canonical values from a comma list. Throws InputError: unknown name, value out of range.
  std::function<std::vector<std::string>(std::string_view text)> parse{};
  /// Puts a canonical value into a case, and back; nothing where the case has none.
  std::function<void(Case& c, const std::string& value)> assign{};
  std::function<std::optional<std::string>(const Case& c)> text{};
  /// Whether a mask depends on this axis; nullptr for axes that every case has.
  bool (*applies)(const MaskTraits& mask) = nullptr;
  /// Whether the standard is left out of cases, keys and records: the axis was added after records
  /// had been published.
  bool quiet = false;
  /// Whether only cells over ranks have it.
  bool over_ranks = false;
  /// Whether only a verb sets it, and `parse` refuses it.
  bool set_by_verb = false;
  std::function<void(Case& c)> clear{};  ///< set where `applies` or `over_ranks` is
  /// The keys of the axis's entries of the record's "case" object.
  std::vector<std::string> keys{};
  /// Those entries. `read` throws InputError naming the key.
  std::function<void(const Case& c, nlohmann::json& json)> write{};
  std::function<void(const nlohmann::json& json, Case& c)> read{};
};

/// All axes, in the order of keys and help.
std::span<const Axis> axis_table();
inline constexpr std::string_view kTokensPerRank = "tokens_per_rank";
/// A value of `device` (a GPU if there is one) and of `ranks` (as many as can be started).
inline constexpr std::string_view kFound = "found";

/// An axis of the table, or `tokens_per_rank`, another way to say `tokens`, which is no part of
/// keys and records. Throws InputError that suggests the nearest name.
const Axis& find_axis(std::string_view name);

/// All that find_axis finds: the axes of the table and, behind them, `tokens_per_rank`.
std::vector<const Axis*> named_axes();

/// Whether cells that differ in this axis have different inputs or another reference: no kernel,
/// pass, determinism, mode, and of the axes of ranks their number alone.
bool shapes_problem(const Axis& axis);

/// A case's value of an axis, including a standard that the case leaves out; nothing where its mask
/// does not depend on the axis.
std::optional<std::string> full_text(const Axis& axis, const Case& c);

/// Canonical values by axis name.
using AxisValues = std::map<std::string, std::vector<std::string>, std::less<>>;

/// The two sides of a `-a` argument, "AXIS=VALUES". Throws InputError for another text and for an
/// unknown axis.
std::pair<const Axis*, std::string_view> split_axis_argument(std::string_view argument);

/// Reads one `-a` argument, "AXIS=VALUES", into `values`, replacing the axis's values there.
/// Throws InputError.
void parse_axis_argument(std::string_view argument, AxisValues& values);

/// Ranks per node where the nodes are unknown.
inline constexpr int kRanksPerNode = 8;

/// The case with defaults written out and with the axes emptied that its mask does not depend on,
/// so that equal work has an equal key. Without a scheme the axes of ranks are emptied too; with
/// one, its shard (instead of "published", "best" or none), factor (by the nodes) and transport (by
/// the device) are written out. Throws InputError for an unknown mask or scheme.
Case canonical(Case c, int ranks_per_node = kRanksPerNode);

}  // namespace longca
