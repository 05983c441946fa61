#include "bench/launch/rank_session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <thread>
#include <utility>

#include "bench/launch/launcher.h"
#include "bench/launch/listening_host.h"
#include "bench/run/run_cells.h"
#include "core/counted.h"
#include "core/error.h"

namespace longca {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kLauncherGrace = 5000ms;  // to end its ranks and remove its files
constexpr auto kRankGrace = 1000ms;      // for ranks to notice that they are alone

/// Whether an event is rank 0's message `key`; rank 0 speaks for all ranks.
bool is_of_root(const RankServer::Event& event, const char* key) {
  return event.kind == RankServer::Event::Kind::message && event.rank == 0 &&
         event.message.contains(key);
}

}  // namespace

std::string list_ranks(const std::vector<int>& ranks) {
  constexpr std::size_t kFewest = 4;  // in a row that are written as a run
  std::vector<std::string> runs;
  for (std::size_t first = 0, end = 0; first < ranks.size(); first = end) {
    const auto follows = [&] { return ranks[end] == ranks[end - 1] + 1; };
    for (end = first + 1; end < ranks.size() && follows();) ++end;
    if (end - first < kFewest) end = first + 1;
    runs.push_back(end - first == 1 ? std::to_string(ranks[first])
                                    : fmt::format("{} to {}", ranks[first], ranks[end - 1]));
  }
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(runs, ", "));
}

RankSession::RankSession(const RankStart& start, int ranks, const std::filesystem::path& scratch)
    : ranks_(ranks), found_(start.launcher == Launcher::found) {
  const std::string secret = make_secret();
  server_ = std::make_unique<RankServer>(
      scratch,
      RankServer::Options{.ranks = ranks, .secret = secret, .host = listening_host(start)});
  RankCommand command =
      rank_command(rank_machine(), start, ranks, server_->address(), scratch.string());
  ChildProcess::Options options;
  options.environment = std::move(command.environment);
  options.environment.emplace_back(kSecretVariable, secret);
  // On SIGTERM a launcher ends its ranks and removes its files.
  options.death_signal = found_ ? SIGKILL : SIGTERM;
  options.inherits_all = found_;  // a launcher may have given its processes descriptors (PMI_FD)
  launcher_ = std::make_unique<ChildProcess>(command.command, options);
}

RankSession::~RankSession() {
  end();
}

void RankSession::note_hello(int rank) {
  const RankHello& hello = server_->hellos().at(rank);
  if (hello.host == host_name()) pids_[rank] = hello.pid;
}

RankSession::Start RankSession::wait_until_ready(double limit_s, std::string& reason) {
  using Kind = RankServer::Event::Kind;
  const auto deadline = Clock::now() + std::chrono::duration<double>(limit_s);
  while (true) {
    const RankServer::Event event = server_->wait(kPollInterval);
    if (InterruptGuard::signal() != 0) return Start::interrupted;
    if (event.kind == Kind::hello) note_hello(event.rank);
    if (is_of_root(event, "ready")) return Start::ready;
    throw_if_refused(event);
    if (event.kind == Kind::noise) {
      reason = fmt::format("the ranks could not start: rank {} sent {}", event.rank, event.noise);
      return Start::failed;
    }
    if (event.kind == Kind::gone) {
      reason = why_not_started(event.rank);
      return Start::failed;
    }
    if (event.kind == Kind::nothing && launcher_->has_ended()) {
      reason = why_not_started({});
      return Start::failed;
    }
    if (Clock::now() > deadline) {
      reason = fmt::format("the ranks could not start in {} s: {}", limit_s, who_is_missing());
      return Start::failed;
    }
  }
}

void RankSession::throw_if_refused(const RankServer::Event& event) {
  if (!is_of_root(event, "refused") || !event.message.at("refused").is_string()) return;
  launcher_->reap(kRankGrace);  // all ranks end now
  throw InputError(event.message.at("refused").get<std::string>());
}

/// Why the start failed: the launcher has ended, or will because rank `gone` has.
std::string RankSession::why_not_started(std::optional<int> gone) {
  // Ranks that refuse each other end at once: rank 0's sentence may come after another's end.
  const auto deadline = Clock::now() + kLauncherGrace;
  while (Clock::now() < deadline && !launcher_->has_ended())
    throw_if_refused(server_->wait(kPollInterval));
  for (auto event = server_->wait(0ms); event.kind != RankServer::Event::Kind::nothing;
       event = server_->wait(0ms)) {
    throw_if_refused(event);
  }
  launcher_->terminate(kLauncherGrace);
  const LauncherReport report = read_launcher_report(take_output());
  std::string reason = "the ranks could not start";
  if (report.rank) {
    reason += fmt::format(": rank {} {}", *report.rank, report.how);
  } else if (gone) {
    reason += fmt::format(": rank {} ended", *gone);
  } else if (const auto others = server_->other_ranks()) {
    reason += fmt::format(
        ": the launcher started processes of {} each, not of {}: is it of the MPI that "
        "longca-rank was built with?",
        counted(*others, "rank"), ranks_);
  }
  if (!report.said.empty()) reason += (report.rank || gone ? ", saying: " : ": ") + report.said;
  return reason;
}

std::string RankSession::who_is_missing() const {
  std::vector<int> missing;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!server_->has(rank)) missing.push_back(rank);
  }
  if (missing.empty()) return "they did not agree with each other";
  return "nothing was heard of " + list_ranks(missing);
}

/// Checks that the process id still belongs to a rank and not to a later process.
bool RankSession::is_rank(pid_t pid) const {
  const std::string arguments = proc_text(fmt::format("/proc/{}/cmdline", pid));
  const auto has = [&](const std::string& text) {
    return arguments.find(text) != std::string::npos;
  };
  const std::string program = rank_machine().program.filename().string();
  return has("--connect") && (has(program) || has("liblongca_rank.so"));
}

void RankSession::finish() {
  server_->hang_up();
  const auto deadline = Clock::now() + kLauncherGrace;
  while (!launcher_->has_ended() && Clock::now() < deadline && InterruptGuard::signal() == 0) {
    std::this_thread::sleep_for(5ms);
  }
  end();
}

void RankSession::end() {
  launcher_->terminate(kLauncherGrace);
  // Ranks of a launcher that was killed end when their sockets close or their parents die.
  const auto begin = Clock::now();
  bool killed = false;
  while (true) {
    std::erase_if(pids_, [&](const auto& rank) { return !is_rank(rank.second); });
    if (pids_.empty()) return;
    if (!killed && Clock::now() - begin > kRankGrace) {
      for (const auto& [rank, pid] : pids_) ::kill(pid, SIGKILL);
      killed = true;
    }
    if (Clock::now() - begin > kLauncherGrace)
      return;  // a rank is stuck in a device that does not answer
    std::this_thread::sleep_for(5ms);
  }
}

}  // namespace longca
