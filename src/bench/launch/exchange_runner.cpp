#include "bench/launch/exchange_runner.h"

#include <fmt/format.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "bench/run/protocol.h"
#include "bench/run/run_cells.h"
#include "core/error.h"
#include "core/system_error.h"

namespace longca {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using Kind = RankServer::Event::Kind;

constexpr double kStartLimit = 60;     // s
constexpr auto kReportGrace = 5000ms;  // for the launcher to report how a rank ended

}  // namespace

ExchangeRunner::ExchangeRunner(int ranks, const RunLimits& limits) : limits_(limits) {
  RankStart start;
  start.suite_hash = "exchanges";
  session_ = std::make_unique<RankSession>(start, ranks, scratch_.path());
  std::string reason;
  if (session_->wait_until_ready(kStartLimit, reason) == RankSession::Start::failed) {
    throw SystemError(reason);
  }
}

ExchangeRunner::~ExchangeRunner() {
  if (session_ && InterruptGuard::signal() == 0) session_->finish();
}

ExchangeRunner::Answer ExchangeRunner::run(std::span<const TimedExchange> exchanges) {
  Answer answer;
  if (InterruptGuard::signal() != 0) return answer;
  stage_ = "the start of " + exchanges.front().transport;
  const nlohmann::json request = {
      {"exchanges", std::vector<TimedExchange>(exchanges.begin(), exchanges.end())},
      {"limits", limits_}};
  if (!session_->server().send(0, request)) rank_gone(0);
  const std::chrono::duration<double> limit(limits_.case_limit_s);
  auto deadline = Clock::now() + limit;
  while (true) {
    const RankServer::Event event = session_->server().wait(kPollInterval);
    if (InterruptGuard::signal() != 0) return answer;
    if (event.kind == Kind::gone) rank_gone(event.rank);
    if (event.kind == Kind::noise) fail(event.rank, "sent " + event.noise);
    if (event.kind == Kind::message) {
      if (take(event, exchanges.size(), answer)) return answer;
      if (!failed_.empty()) rank_gone(event.rank);
      if (event.rank == 0 && event.message.contains("stage")) deadline = Clock::now() + limit;
    }
    if (Clock::now() > deadline) {
      session_->end();
      throw SystemError(fmt::format("{} had not ended after {} s", stage_, limits_.case_limit_s));
    }
  }
}

/// Returns true for the first message of a rank that cannot go on.
bool ExchangeRunner::note_failure(const nlohmann::json& message) {
  const auto said = message.find("failed");
  if (said == message.end() || !said->is_string() || !failed_.empty()) return false;
  failed_ = said->get<std::string>();
  return true;
}

/// Returns true if it was the answer.
bool ExchangeRunner::take(const RankServer::Event& event, std::size_t count, Answer& answer) {
  try {
    const nlohmann::json& message = event.message;
    note_failure(message);
    if (event.rank != 0) return false;
    if (message.contains("stage")) stage_ = message.at("stage").get<std::string>();
    if (message.contains("none")) {
      const auto code = parse_status_code(message.at("status").get<std::string>());
      answer.status = {code.value_or(StatusCode::crash), message.at("none").get<std::string>()};
      return true;
    }
    if (!message.contains("times")) return false;
    answer.times = message.at("times").get<std::vector<ExchangeMs>>();
    if (answer.times.size() == count) return true;
  } catch (const nlohmann::json::exception&) {
  } catch (const InputError&) {
  }
  fail(event.rank, "sent what is no answer");
}

/// "rank 1 sent what is no message, in ring of 1024 bytes over mpi".
void ExchangeRunner::fail(int rank, std::string reason) {
  session_->end();
  throw SystemError(fmt::format("rank {} {}, in {}", rank, reason, stage_));
}

/// The rank that ended first is named by its own message, else by the launcher's report.
void ExchangeRunner::rank_gone(int rank) {
  const auto deadline = Clock::now() + kReportGrace;
  while (!session_->launcher_has_ended() && Clock::now() < deadline) {
    const RankServer::Event event = session_->server().wait(kPollInterval);
    if (event.kind == Kind::message && note_failure(event.message)) rank = event.rank;
  }
  session_->end();
  const LauncherReport report = read_launcher_report(session_->take_output());
  if (!failed_.empty()) throw SystemError(fmt::format("rank {}: {}", rank, failed_));
  std::string reason = report.rank ? report.how : "ended";
  if (!report.said.empty()) reason += ", saying: " + report.said;
  fail(report.rank.value_or(rank), std::move(reason));
}

}  // namespace longca
