#include "bench/launch/rank_attempt.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <numeric>

#include "bench/measure/device_clock.h"
#include "bench/run/memory_watch.h"
#include "bench/run/run_cells.h"

namespace longca {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Kind = RankServer::Event::Kind;

constexpr auto kReportGrace = 5000ms;  // for the launcher to report how a rank ended
constexpr auto kFoundGrace = 200ms;    // for ranks' own messages

/// RAM in bytes that a rank may use beyond its cell's limit.
std::int64_t rank_slack() {
  static const std::int64_t bytes = (std::int64_t{512} << 20) + cache_flush_bytes();
  return bytes;
}

/// The string at a key of the message; empty if there is none.
std::string string_at(const nlohmann::json& message, const char* key) {
  const auto found = message.find(key);
  return found != message.end() && found->is_string() ? found->get<std::string>() : "";
}

}  // namespace

RankAttempt::RankAttempt(RankSession& session, const Case& c, const CellOptions& options,
                         std::int64_t resident_limit)
    : session_(session),
      case_(c),
      options_(options),
      resident_limit_(resident_limit),
      clocks_(static_cast<std::size_t>(c.ranks.value()), StageClock(options.limits)) {}

RankAttempt::Result RankAttempt::run(const nlohmann::json& request, Record& record,
                                     std::string& output) {
  Result result = Result::not_begun;
  if (session_.server().send(0, request)) {
    result = wait_for_record(record);
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
    if (event.kind == Kind::noise) return bad_message(event.rank, event.noise, record);
    if (event.kind == Kind::message) {
      try {
        if (take_message(event, record)) return Result::recorded;
      } catch (const BadMessage& bad) {
        return bad_message(event.rank, bad.what(), record);
      }
      if (!failed_.ok()) return rank_gone(event.rank, record);
    }
    // After messages too: a rank that sends many is not excused by them.
    if (const std::vector<int> late = expired(); !late.empty()) {
      const std::vector<int> ranks = culprits(late);
      const auto& clock = clocks_[static_cast<std::size_t>(ranks.front())];
      return end(record, StatusCode::timeout,
                 fmt::format("{}: {}",
                             ranks.size() == clocks_.size() && ranks.size() > 1
                                 ? fmt::format("all {} ranks", ranks.size())
                                 : list_ranks(ranks),
                             clock.timeout_reason()));
    }
    if (std::string fault = memory_fault(); !fault.empty()) {
      return end(record, StatusCode::oom, std::move(fault));
    }
  }
}

/// Returns true if it was the record. Throws BadMessage.
bool RankAttempt::take_message(const RankServer::Event& event, Record& record) {
  const nlohmann::json& message = event.message;
  if (message.contains("record")) {
    if (event.rank != 0) throw BadMessage("a record, which only rank 0 does");
    if (!message.contains("ends") || !message.at("ends").is_boolean()) {
      throw BadMessage("what is no message");
    }
    record = judge_record(message, case_, options_);
    session_ended_ = message.at("ends").get<bool>();
    return true;
  }
  if (message.contains("trace")) take_trace(event.rank, message.at("trace"));
  note_failure(event.rank, message);
  take_stage(event.rank, message);
  return false;
}

void RankAttempt::take_trace(int rank, const nlohmann::json& events) {
  const bool is_wanted = options_.trace && rank == 0 && trace_.size() < clocks_.size();
  if (!is_wanted || !events.is_array()) throw BadMessage("a trace that nobody asked for");
  trace_.push_back(events.dump());
}

void RankAttempt::take_stage(int rank, const nlohmann::json& message) {
  if (rank >= static_cast<int>(clocks_.size())) return;  // waits for a larger cell
  if (const std::string stage = string_at(message, "stage"); !stage.empty()) {
    clocks_[static_cast<std::size_t>(rank)].enter(stage);
    waiting_.erase(rank);
  }
  if (const std::string at = string_at(message, "at"); at == kWaitsForRanks) {
    waiting_.insert(rank);
  } else if (!at.empty()) {
    waiting_.erase(rank);
  }
}

void RankAttempt::note_failure(int rank, const nlohmann::json& message) {
  const std::string sentence = string_at(message, "failed");
  if (!failed_.ok() || sentence.empty()) return;
  failed_ = {parse_status_code(string_at(message, "status")).value_or(StatusCode::crash),
             fmt::format("rank {}: {}", rank, sentence)};
  if (failed_.ok()) failed_.code = StatusCode::crash;
}

bool RankAttempt::has_begun() const {
  return std::ranges::any_of(clocks_, &StageClock::has_begun);
}

std::string RankAttempt::stage_of(int rank) const {
  const auto index = static_cast<std::size_t>(rank);
  if (index >= clocks_.size()) return "no cell";
  return clocks_[index].stage();
}

RankAttempt::Result RankAttempt::bad_message(int rank, const std::string& what, Record& record) {
  return end(record, StatusCode::crash,
             fmt::format("in {} rank {} sent {}", stage_of(rank), rank, what));
}

RankAttempt::Result RankAttempt::end(Record& record, StatusCode code, std::string reason) {
  session_.end();
  session_ended_ = true;
  record.status = {code, std::move(reason)};
  return Result::recorded;
}

/// Handles the end of a rank, which ends the others. The rank that ended first is named by its own
/// message, else by the launcher's report, else by the order in which sockets closed.
RankAttempt::Result RankAttempt::rank_gone(int rank, Record& record) {
  // Of a found launch no report comes: its launcher is about to end this process, too.
  const auto deadline = Clock::now() + (session_.is_found() ? kFoundGrace : kReportGrace);
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

/// Ranks whose time is up, except while another rank works for all (makes the reference).
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

/// Ranks for which the others wait; all `late` ones if those cannot be singled out.
std::vector<int> RankAttempt::culprits(const std::vector<int>& late) const {
  std::vector<int> ranks = behind();
  const std::size_t candidates = ranks.size();
  std::erase_if(ranks, [&](int rank) { return waiting_.contains(rank); });
  if (!ranks.empty() && (ranks.size() < candidates || candidates < clocks_.size())) return ranks;
  return late;
}

/// "in forward rank 1 passed the memory limit of 512 MiB", or "" if none does. The ranks' output
/// arrives as one stream and is charged to all together.
std::string RankAttempt::memory_fault() const {
  const std::string printed =
      memory_excess(0, session_.printed_bytes(), resident_limit_, rank_slack());
  if (!printed.empty()) return fmt::format("in {} the ranks {}", stage_of(0), printed);
  for (const auto& [rank, pid] : session_.local_pids()) {
    const std::string excess = memory_excess(resident_bytes(pid), 0, resident_limit_, rank_slack());
    if (!excess.empty()) return fmt::format("in {} rank {} {}", stage_of(rank), rank, excess);
  }
  return {};
}

}  // namespace longca
