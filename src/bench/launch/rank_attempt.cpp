#include "bench/launch/rank_attempt.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "bench/measure/device_clock.h"
#include "bench/run/run_cells.h"

namespace longca {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Kind = RankServer::Event::Kind;

constexpr auto kPollInterval = 50ms;
constexpr auto kReportGrace = 5000ms;  // for the launcher to report how a rank ended

std::int64_t rank_slack() {
  static const std::int64_t bytes = (std::int64_t{512} << 20) + cache_flush_bytes();
  return bytes;
}

std::string name_of(const std::vector<int>& ranks, int all) {
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  if (static_cast<int>(ranks.size()) == all) return fmt::format("all {} ranks", all);
  return fmt::format("ranks {}", fmt::join(ranks, ", "));
}

}  // namespace

RankAttempt::RankAttempt(RankSession& session, int ranks, const RunLimits& limits,
                         std::int64_t resident_limit)
    : session_(session),
      limits_(limits),
      resident_limit_(resident_limit),
      clocks_(static_cast<std::size_t>(ranks), StageClock(limits_)) {}

RankAttempt::Result RankAttempt::run(const nlohmann::json& request, Record& record,
                                     std::string& output) {
  Result result = Result::not_begun;
  if (session_.server().send(0, request)) {
    try {
      result = wait_for_record(record);
    } catch (const nlohmann::json::exception&) {
      result = end(record, StatusCode::crash, "a rank sent a message that lacks something");
    }
  } else {
    session_ended_ = true;
  }
  output = output_ + session_.take_output();
  return result;
}

RankAttempt::Result RankAttempt::wait_for_record(Record& record) {
  while (true) {
    const RankServer::Event event = session_.server().wait(kPollInterval);
    if (event.kind == Kind::gone) return rank_gone(event.rank, record);
    if (InterruptGuard::signal() != 0) {
      // The launcher of a found launch ends everybody when a rank has ended.
      if (!session_.is_found()) return Result::interrupted;
      if (const auto gone = session_.server().wait(kPollInterval); gone.kind == Kind::gone) {
        return rank_gone(gone.rank, record);
      }
      return Result::interrupted;
    }
    if (event.kind == Kind::noise) {
      return end(
          record, StatusCode::crash,
          fmt::format("in {} rank {} sent what is no message", stage_of(event.rank), event.rank));
    }
    if (event.kind == Kind::message) {
      if (take_message(event, record)) return Result::recorded;
      if (!failed_.ok()) return rank_gone(event.rank, record);
      continue;
    }
    if (const std::vector<int> late = expired(); !late.empty()) {
      const std::vector<int> ranks = culprits(late);
      const auto& clock = clocks_[static_cast<std::size_t>(ranks.front())];
      return end(record, StatusCode::timeout,
                 fmt::format("{}: {}", name_of(ranks, static_cast<int>(clocks_.size())),
                             clock.timeout_reason()));
    }
    if (const int rank = too_large(); rank >= 0) {
      return end(record, StatusCode::oom,
                 fmt::format("in {} rank {} passed the memory limit of {} MiB", stage_of(rank),
                             rank, resident_limit_ >> 20));
    }
  }
}

/// Returns true if it was the record.
bool RankAttempt::take_message(const RankServer::Event& event, Record& record) {
  const nlohmann::json& message = event.message;
  if (message.contains("record")) {
    record = message.at("record").get<Record>();
    session_ended_ = message.at("ends").get<bool>();
    return true;
  }
  note_failure(event.rank, message);
  if (event.rank >= static_cast<int>(clocks_.size())) return false;  // waits for a larger cell
  auto& clock = clocks_[static_cast<std::size_t>(event.rank)];
  if (message.contains("stage")) {
    clock.enter(message.at("stage").get<std::string>());
    waiting_.erase(event.rank);
  }
  if (message.contains("at")) {
    const bool waits = message.at("at").get<std::string>() == kWaitsForRanks;
    if (waits)
      waiting_.insert(event.rank);
    else
      waiting_.erase(event.rank);
  }
  return false;
}

void RankAttempt::note_failure(int rank, const nlohmann::json& message) {
  if (!failed_.ok() || !message.contains("failed")) return;
  const std::string word = message.value("status", "crash");
  failed_ = {parse_status_code(word).value_or(StatusCode::crash),
             fmt::format("rank {}: {}", rank, message.at("failed").get<std::string>())};
}

bool RankAttempt::has_begun() const {
  return std::ranges::any_of(clocks_, &StageClock::has_begun);
}

std::string RankAttempt::stage_of(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= clocks_.size()) return "no cell";
  return clocks_[index].stage();
}

RankAttempt::Result RankAttempt::end(Record& record, StatusCode code, std::string reason) {
  session_.end();
  session_ended_ = true;
  record.status = {code, std::move(reason)};
  return Result::recorded;
}

/// Handles the end of a rank, which ends the others. Which one was first is known best from its own
/// message, then from the launcher, then from the order in which sockets closed.
RankAttempt::Result RankAttempt::rank_gone(int rank, Record& record) {
  const auto deadline = Clock::now() + kReportGrace;
  while (!session_.launcher_has_ended() && Clock::now() < deadline) {
    const RankServer::Event event = session_.server().wait(kPollInterval);
    if (event.kind == Kind::message) note_failure(event.rank, event.message);
  }
  session_.end();
  session_ended_ = true;
  output_ = session_.take_output();
  if (!failed_.ok()) {
    record.status = failed_;
    return Result::recorded;
  }
  if (!has_begun()) return Result::not_begun;
  const LauncherReport report = read_launcher_report(output_);
  const int first = report.rank.value_or(rank);
  std::string reason =
      fmt::format("in {} rank {} {}", stage_of(first), first, report.rank ? report.how : "ended");
  if (!report.said.empty()) reason += ", saying: " + report.said;
  record.status = {StatusCode::crash, std::move(reason)};
  return Result::recorded;
}

/// Ranks whose time is up. Time in which another rank does the runner's own work for all (the
/// reference) does not count.
std::vector<int> RankAttempt::expired() const {
  const auto works_for = [](const StageClock& waiting) {
    return [&](const StageClock& other) {
      return other.in_own_work() && other.stages_entered() > waiting.stages_entered() &&
             !other.expired();
    };
  };
  std::vector<int> ranks;
  for (std::size_t i = 0; i < clocks_.size(); ++i) {
    if (!clocks_[i].expired() || std::ranges::any_of(clocks_, works_for(clocks_[i]))) continue;
    ranks.push_back(static_cast<int>(i));
  }
  return ranks;
}

/// Ranks in an earlier stage than the furthest rank; all ranks if all are in one stage.
std::vector<int> RankAttempt::behind() const {
  const auto furthest = std::ranges::max_element(clocks_, {}, &StageClock::stages_entered);
  std::vector<int> ranks;
  for (std::size_t i = 0; i < clocks_.size(); ++i) {
    if (clocks_[i].stage() != furthest->stage()) ranks.push_back(static_cast<int>(i));
  }
  if (!ranks.empty()) return ranks;
  ranks.resize(clocks_.size());
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

/// Ranks that the others wait for; all that are late if those cannot be singled out.
std::vector<int> RankAttempt::culprits(const std::vector<int>& late) const {
  std::vector<int> ranks = behind();
  const std::size_t candidates = ranks.size();
  std::erase_if(ranks, [&](int rank) { return waiting_.contains(rank); });
  if (!ranks.empty() && (ranks.size() < candidates || candidates < clocks_.size())) return ranks;
  return late;
}

/// The rank that exceeds its memory limit; -1 if none does.
int RankAttempt::too_large() const {
  for (const auto& [rank, pid] : session_.local_pids()) {
    if (resident_bytes(pid) > resident_limit_ + rank_slack()) return rank;
  }
  return -1;
}

}  // namespace longca
