#pragma once

#include <chrono>
#include <string>

#include "bench/suite/suite.h"

namespace longca {

/// The deadline of a cell, from the stages that its process reports. The cell's limit counts the
/// kernel's stages only; each stage of the runner's own work (inputs, reference, verification) has
/// a wide limit of its own.
class StageClock {
 public:
  explicit StageClock(const RunLimits& limits);

  /// Enters the stage that begins now.
  void enter(std::string stage);
  /// The current one; "the start of its process" before the first.
  const std::string& stage() const { return stage_; }
  int stages_entered() const { return stages_entered_; }
  bool has_begun() const { return stages_entered_ > 0; }

  /// Whether the stage is the runner's own work.
  bool in_own_work() const;
  bool expired() const { return Clock::now() > deadline_; }
  /// "forward had not ended when the cell's 120 s were up".
  std::string timeout_reason() const;

 private:
  using Clock = std::chrono::steady_clock;

  const RunLimits& limits_;
  std::string stage_ = "the start of its process";
  int stages_entered_ = 0;
  Clock::duration used_{};  ///< by the kernel's own stages before this one
  Clock::time_point stage_begin_;
  Clock::time_point deadline_;
};

}  // namespace longca
