#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bench/compare/compare_times.h"
#include "bench/record/record.h"

namespace longca {

/// What became of a cell, worst first.
enum class CellVerdict : std::uint8_t {
  broken,     ///< was ok and is not
  slower,     ///< to faster: both are ok, see Change
  unclear,    ///< also: failed before and now, but not in the same way
  only_base,  ///< the other file has no such cell
  only_new,
  fixed,  ///< was not ok and is
  faster,
  same,  ///< also: the same status as before, which is not ok
};
inline constexpr CellVerdict kVerdicts[] = {
    CellVerdict::broken,   CellVerdict::slower, CellVerdict::unclear, CellVerdict::only_base,
    CellVerdict::only_new, CellVerdict::fixed,  CellVerdict::faster,  CellVerdict::same};
std::string_view to_string(CellVerdict verdict);

/// A metric beside the time that changed by more than it does from one run to the next.
struct MetricChange {
  std::string metric;
  double base = 0;
  double next = 0;

  bool operator==(const MetricChange&) const = default;
};

struct CellComparison {
  std::string key;
  Case c;
  CellVerdict verdict = CellVerdict::same;
  std::optional<StatusCode> base_status, next_status;  ///< absent where the file has no such cell
  std::string reason;                                  ///< of the new record, if it is not ok
  std::optional<double> base_ms, next_ms;              ///< time_ms of cells that are ok
  std::optional<TimeRatio> time;                       ///< of cells that are ok in both
  /// TimeRatio::ratio in clock cycles instead of ms, where both records have sm_clock_mhz.
  std::optional<double> clock_ratio;
  std::vector<MetricChange> changes;  ///< of error, memory and plan time
};

/// Something of the environment that the two files differ in; several values are joined by ", ",
/// cards as "1, 2 or 4 × NVIDIA H200; NVIDIA H100".
struct EnvironmentChange {
  std::string name;  ///< "driver"
  std::string base;
  std::string next;

  bool operator==(const EnvironmentChange&) const = default;
};

/// Cores that other work takes, above which a machine counts as busy.
inline constexpr double kBusyHost = 0.5;

struct Comparison {
  double min_effect = kMinEffect;
  std::vector<CellComparison> cells;          ///< worst first
  std::map<CellVerdict, std::size_t> counts;  ///< of every verdict, zeros too
  std::vector<EnvironmentChange> environment;
  std::size_t single_rounds = 0;  ///< cells whose spread between processes is unknown
  /// Cells of CPUs with a time of which a record has a host_load above kBusyHost: more of their
  /// verdicts may be false than of others.
  std::size_t busy = 0;
  /// Why no times were compared, a sentence each; empty where some were, or a cell changed status.
  std::vector<std::string> notes;

  bool has_regression() const;
};

struct CompareOptions {
  double min_effect = kMinEffect;  ///< a share
  bool across = false;             ///< records of another processor or GPU are compared as well
};

/// Compares the newest records of each key. Throws InputError, unless `across`, where a cell ran on
/// another machine.
Comparison compare_records(std::span<const Record> base, std::span<const Record> next,
                           const CompareOptions& options);

/// The record's rounds, or its samples as one.
Rounds rounds_of(const Record& record);

}  // namespace longca
