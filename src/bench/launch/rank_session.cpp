#include "bench/launch/rank_session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <thread>

#include "bench/interrupt.h"
#include "bench/launch/launcher_report.h"
#include "core/error.h"

namespace longca {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kLook = 50ms;
constexpr auto kLauncherGrace = 5000ms;  // to end its ranks and remove its files
constexpr auto kRankGrace = 1000ms;      // for ranks to notice that they are alone

bool is_this_host(const std::string& host) {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 && host == name.data();
}

}  // namespace

RankSession::RankSession(const RankStart& start, int ranks, const std::filesystem::path& scratch)
    : ranks_(ranks), found_(start.launcher == Launcher::found) {
  const bool network = start.several_hosts;
  server_ = std::make_unique<RankServer>(scratch, network);
  const RankCommand command =
      rank_command(rank_machine(), start, ranks, server_->address(), scratch.string());
  // A launcher that is asked to end ends its ranks and removes its files.
  launcher_ = std::make_unique<ChildProcess>(command.command, command.environment,
                                             found_ ? SIGKILL : SIGTERM);
}

RankSession::~RankSession() {
  end();
}

void RankSession::note_hello(int rank) {
  const RankHello& hello = server_->hellos().at(rank);
  if (is_this_host(hello.host)) pids_[rank] = hello.pid;
}

RankSession::Start RankSession::wait_until_ready(double limit_s, std::string& reason) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(limit_s);
  while (true) {
    const RankServer::Event event = server_->wait(kLook);
    using Kind = RankServer::Event::Kind;
    if (InterruptGuard::signal() != 0) return Start::interrupted;
    if (event.kind == Kind::hello) note_hello(event.rank);
    if (event.kind == Kind::message && event.message.contains("refused")) {
      throw InputError(event.message.at("refused").get<std::string>());
    }
    if (event.kind == Kind::message && event.message.contains("ready")) return Start::ready;
    const bool gone = event.kind == Kind::gone;
    if (gone || (event.kind == Kind::nothing && launcher_->has_ended())) {
      if (gone) launcher_->reap(kRankGrace);
      reason = "the ranks could not start";
      const LauncherReport report = read_launcher_report(take_output());
      if (report.rank)
        reason += fmt::format(": rank {} {}", *report.rank, report.how);
      else if (gone)
        reason += fmt::format(": rank {} ended", event.rank);
      if (!report.said.empty()) reason += (report.rank || gone ? ", saying: " : ": ") + report.said;
      return Start::failed;
    }
    if (Clock::now() > deadline) {
      reason = fmt::format("the ranks could not start in {} s: ", limit_s);
      std::string missing;
      for (int rank = 0; rank < ranks_; ++rank) {
        if (!server_->has(rank)) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
      }
      reason += missing.empty() ? "they did not agree with each other"
                                : fmt::format("nothing was heard of rank {}", missing);
      return Start::failed;
    }
  }
}

/// The number may belong to another process by now.
bool RankSession::is_rank(pid_t pid) const {
  std::ifstream file(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
  const std::string arguments{std::istreambuf_iterator<char>(file), {}};
  return arguments.find(rank_machine().program.filename().string()) != std::string::npos &&
         arguments.find("--connect") != std::string::npos;
}

void RankSession::end() {
  launcher_->terminate(kLauncherGrace);
  // Those of a launcher that was killed: they end when their sockets or their parents are gone.
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
      return;  // it waits for a device that does not answer
    std::this_thread::sleep_for(5ms);
  }
}

}  // namespace longca
