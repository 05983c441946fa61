#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <unordered_map>

#include "bench/run/runner.h"

namespace longca {

/// One line about a cell: "flash causal 4096 forward: ok, 3.21 ms, 123 GFLOP/s". `axes`: further
/// ones of the case, " lengths=pile".
std::string describe_record(const Record& record, const std::string& axes = "");

/// By the keys of cases whose lines would equal another one's: the axes that differ, "
/// lengths=pile".
std::unordered_map<std::string, std::string> axes_that_tell_apart(std::span<const Case> cases);

/// "59 s", "4:05", "2:03:04".
std::string format_duration(double seconds);

/// Shows a run's progress on stderr (a cell counts once per round): on a terminal a bar with the
/// time left, and a line per cell that failed; otherwise a line per cell.
class Progress : public RunListener {
 public:
  enum class Style : std::uint8_t { silent, lines, bar };
  /// Bar if stderr is a terminal, else lines.
  static Style style_of_stderr();

  Progress(std::size_t cells, Style style, std::FILE* out = stderr);
  ~Progress() override;

  void started(const Case& c) override;
  void finished(const Record& record, const std::string& output) override;
  /// Shows the axes that tell apart cells of these whose lines would be equal.
  void tell_apart(std::span<const Case> cases) { axes_ = axes_that_tell_apart(cases); }
  /// " softcap=30 dim=64" of such a case, else nothing.
  std::string axes_of(const Case& c) const;
  /// Shows the round, from 1, with all following cells.
  void begin_round(int round, int rounds);
  /// Removes cells that will not run from those still to do.
  void leave_out(std::size_t cells) { cells_ -= cells; }

 private:
  void draw_bar(const std::string& now);
  void clear_bar();

  std::size_t cells_;
  std::size_t done_ = 0;
  Style style_;
  std::FILE* out_;
  std::unordered_map<std::string, std::string> axes_;  ///< by key: axes_that_tell_apart
  std::string round_;  ///< "round 2 of 7, "; empty in a run without rounds
  std::chrono::steady_clock::time_point begin_;
};

}  // namespace longca
