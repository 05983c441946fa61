#include "bench/launch/launch_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "bench/launch/rank_attempt.h"
#include "bench/launch/request.h"
#include "bench/plugin_loader.h"
#include "bench/ranks/rank_trace.h"
#include "bench/record/environment.h"
#include "bench/run/run_cells.h"
#include "parallel/plan/rank_limits.h"

namespace longca {
namespace {

constexpr double kStartAllowance = 10;  // s in addition to the cell's limit, for processes to start
constexpr int kMaxFailedStarts = 2;     // in a row, after which no further start is tried

}  // namespace

// A tenth of the memory is left to the system and this process.
LaunchRunner::LaunchRunner(LaunchOptions options)
    : options_(std::move(options)), host_limit_mib_((available_memory() / 10 * 9) >> 20) {}

LaunchRunner::~LaunchRunner() {
  if (session_ && InterruptGuard::signal() == 0) session_->finish();
}

Support LaunchRunner::available(const Case& c) const {
  if (Support built = ranks_are_built(); !built.ok()) return built;
  const int ranks = c.ranks.value();
  if (options_.found_ranks > 0) {
    if (ranks <= options_.found_ranks) return {};
    return Support::unavailable(
        fmt::format("this launch has {} processes, not {}", options_.found_ranks, ranks));
  }
  if (options_.start.launcher == Launcher::mpirun) {
    if (Support here = mpirun_is_here(); !here.ok()) return here;
  }
  if (options_.start.launcher == Launcher::srun) {
    if (Support here = srun_is_here(); !here.ok()) return here;
  }
  if (options_.start.several_hosts) {
    if (ranks <= kMaxRunningRanks) return {};
    return Support::unavailable(fmt::format(
        "{} ranks need a place each, and a launch has at most {}", ranks, kMaxRunningRanks));
  }
  if (c.device == "cpu") {
    const int cores = rank_machine().cores;
    if (ranks <= max_ranks_of_host(cores)) return {};
    return Support::unavailable(
        fmt::format("{} ranks need a place each, and {}", ranks, host_limit(cores)));
  }
  const int gpus = rank_machine().gpus;
  if (gpus == 0) return Device::available(DeviceKind::cuda);
  if (ranks <= gpus) return {};
  return Support::unavailable(
      fmt::format("{} ranks need a GPU each, and there are {}", ranks, gpus));
}

CellOptions LaunchRunner::options_for(const Case& c) const {
  CellOptions options = options_.cell;
  std::int64_t& limit = options.limits.memory_limit_mib;
  if (limit == 0 && c.device == "cpu") limit = host_limit_mib_ / *c.ranks;
  options.own_files = own_files(c);
  return options;
}

bool LaunchRunner::start_session(const Case& c, Record& record, bool& interrupted) {
  const int ranks = options_.found_ranks > 0 ? options_.found_ranks : *c.ranks;
  const std::string plugin = plugin_of(c.kernel, c.problem().device);
  // Ranks of a launch that was found cannot be started again.
  const std::string guest = plugin.empty() || options_.found_ranks > 0 ? "" : c.kernel;
  if (session_ && session_->ranks() == ranks && guest == guest_) return true;
  guest_ = guest;
  if (session_) session_->finish();
  session_.reset();
  if (failed_ranks_ != ranks) failed_starts_ = 0;
  failed_ranks_ = ranks;
  if (failed_starts_ >= kMaxFailedStarts) {
    record.status = {StatusCode::crash, failed_because_};
    return false;
  }
  RankStart start_options = options_.start;
  if (options_.found_ranks == 0) {
    start_options.plugins.clear();
    if (!plugin.empty()) start_options.plugins = {plugin};
  }
  session_ = std::make_unique<RankSession>(start_options, ranks, scratch_.path());
  const auto start = session_->wait_until_ready(options_.cell.limits.case_limit_s + kStartAllowance,
                                                failed_because_);
  if (start == RankSession::Start::ready) {
    failed_starts_ = 0;
    return true;
  }
  session_.reset();
  ++failed_starts_;
  interrupted = start == RankSession::Start::interrupted;
  record.status = {StatusCode::crash, failed_because_};
  return false;
}

bool LaunchRunner::run_cell(const Case& c, Record& record, std::string& output) {
  record.c = c;
  if (launch_lost_) return false;
  if (Support support = available(c); !support.ok()) {
    record.status = std::move(support);
    return true;
  }
  const CellOptions options = options_for(c);
  const std::int64_t resident_limit_mib =
      c.device == "cpu" ? options.limits.memory_limit_mib : host_limit_mib_;
  // A second try, since ranks that end before they begin the cell were broken by an earlier one.
  for (int tries = 0; tries < 2; ++tries) {
    bool interrupted = false;
    if (!start_session(c, record, interrupted)) return !interrupted;
    record = Record{};
    record.c = c;
    RankAttempt attempt(*session_, c, options, resident_limit_mib << 20);
    const auto result = attempt.run({{"case", c}, {"options", options}}, record, output);
    if (result == RankAttempt::Result::interrupted) return false;
    if (attempt.session_ended()) {
      launch_lost_ = session_->is_found();
      session_.reset();
    }
    if (record.status.ok()) trace_ = attempt.take_trace();
    if (result == RankAttempt::Result::recorded) return true;
    if (launch_lost_) break;
  }
  record.status = {StatusCode::crash, "the ranks ended before they began the cell"};
  return true;
}

bool LaunchRunner::run(std::span<const Case> cases, RunListener& listener) {
  const bool complete =
      run_cells(cases, listener, [this](const Case& c, Record& record, std::string& output) {
        return run_cell(c, record, output);
      });
  if (!trace_.empty()) write_trace(options_.trace, cases.front(), trace_);
  return complete;
}

}  // namespace longca
