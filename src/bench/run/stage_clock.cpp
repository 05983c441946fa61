#include "bench/run/stage_clock.h"

#include <fmt/format.h>

#include <utility>

namespace longca {
namespace {

/// s for a stage of the runner's own work, in addition to ten times the verification budget.
constexpr double kOwnAllowance = 300;

/// Whether a stage is the runner's own work, for all cells of a problem or to check this one: the
/// cell's clock is stopped during it.
bool is_own_work(const std::string& stage) {
  return stage == "compile" || stage == "inputs" || stage == "reference" || stage == "verify" ||
         stage == "dump" || stage == "selection";
}

std::chrono::steady_clock::duration to_duration(double seconds) {
  return std::chrono::duration_cast<std::chrono::steady_clock::duration>(
      std::chrono::duration<double>(seconds));
}

}  // namespace

StageClock::StageClock(const RunLimits& limits)
    : limits_(limits),
      stage_begin_(Clock::now()),
      deadline_(stage_begin_ + to_duration(limits.case_limit_s)) {}

void StageClock::enter(std::string stage) {
  const auto now = Clock::now();
  if (!is_own_work(stage_)) used_ += now - stage_begin_;
  stage_ = std::move(stage);
  stage_begin_ = now;
  ++stages_entered_;
  const double own_limit = 10 * limits_.verify_budget_s + kOwnAllowance;
  deadline_ = now + (is_own_work(stage_) ? to_duration(own_limit)
                                         : to_duration(limits_.case_limit_s) - used_);
}

bool StageClock::in_own_work() const {
  return is_own_work(stage_);
}

std::string StageClock::timeout_reason() const {
  if (is_own_work(stage_)) return fmt::format("{} did not end", stage_);
  return fmt::format("{} had not ended when the cell's {} s were up", stage_, limits_.case_limit_s);
}

}  // namespace longca
