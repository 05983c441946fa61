#include "bench/run/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <optional>
#include <utility>

#include "attention/adapters/python/python_kernel.h"
#include "attention/api/registry.h"
#include "bench/cell/dump.h"
#include "bench/measure/device_clock.h"
#include "bench/plugin_loader.h"
#include "bench/python_host.h"
#include "bench/record/environment.h"
#include "bench/run/memory_watch.h"
#include "bench/run/run_cells.h"
#include "bench/run/stage_clock.h"
#include "core/error.h"
#include "core/process.h"
#include "core/system_error.h"

namespace longca {
namespace {

/// Throws the InputError or SystemError of a worker that could not write its dump.
void throw_if_dump_failed(const nlohmann::json& message) {
  const auto sentence = message.find("dump_failed");
  if (sentence == message.end()) return;
  const auto path_is_wrong = message.find("path_is_wrong");
  if (!sentence->is_string() || path_is_wrong == message.end() || !path_is_wrong->is_boolean()) {
    throw BadMessage("what is no message");
  }
  if (path_is_wrong->get<bool>()) throw InputError(sentence->get<std::string>());
  throw SystemError(sentence->get<std::string>());
}

using namespace std::chrono_literals;
constexpr auto kCheckInterval = 50ms;  // between checks of memory and clock

/// RAM that a worker may use beyond its cell's limit: the program, its threads, the C library's
/// reserves, the buffer that flushes caches.
std::int64_t worker_slack() {
  static const std::int64_t bytes = (std::int64_t{256} << 20) + cache_flush_bytes();
  return bytes;
}

}  // namespace

/// One attempt at a cell in one worker.
class Runner::Attempt {
 public:
  enum class Result { recorded, interrupted, not_begun };

  Attempt(WorkerProcess& worker, const Case& c, const CellOptions& options,
          std::int64_t resident_limit)
      : worker_(worker),
        case_(c),
        options_(options),
        resident_limit_(resident_limit),
        clock_(options.limits) {}

  /// Whether the worker ends by itself after its record.
  bool worker_ends() const { return worker_ends_; }

  Result run(const nlohmann::json& request, Record& record, std::string& output) {
    if (!worker_.send(request)) return Result::not_begun;
    try {
      const Result result = wait_for_record(record);
      output = output_ + worker_.take_output();
      return result;
    } catch (const BadMessage& bad) {
      // A kernel, or what it left behind, has written to the worker's socket.
      const Result result =
          end(record, StatusCode::crash,
              fmt::format("in {} the process sent {}", clock_.stage(), bad.what()));
      output = worker_.take_output();
      return result;
    }
  }

 private:
  Result wait_for_record(Record& record) {
    while (true) {
      nlohmann::json message;
      const auto event = worker_.wait(kCheckInterval, message);
      if (InterruptGuard::signal() != 0) return Result::interrupted;
      if (event == WorkerProcess::Event::gone) return worker_gone(record);
      if (event == WorkerProcess::Event::message && take_message(message, record)) {
        return Result::recorded;
      }
      // After messages too: a process that sends many is not excused by them.
      if (clock_.expired()) return end(record, StatusCode::timeout, clock_.timeout_reason());
      if (const std::string excess = memory_excess(
              worker_.resident_bytes(), worker_.printed_bytes(), resident_limit_, worker_slack());
          !excess.empty()) {
        return end(record, StatusCode::oom,
                   fmt::format("in {} the process {}", clock_.stage(), excess));
      }
    }
  }

  /// Returns true if it was the record.
  bool take_message(const nlohmann::json& message, Record& record) {
    const auto stage = message.find("stage");
    if (stage != message.end() && stage->is_string()) {
      clock_.enter(stage->get<std::string>());
      return false;
    }
    throw_if_dump_failed(message);
    const auto ends = message.find("ends");
    if (ends == message.end() || !ends->is_boolean()) throw BadMessage("what is no message");
    record = judge_record(message, case_, options_);
    worker_ends_ = ends->get<bool>();
    return true;
  }

  Result end(Record& record, StatusCode code, std::string reason) {
    worker_.kill();
    record.status = {code, std::move(reason)};
    return Result::recorded;
  }

  Result worker_gone(Record& record) {
    const std::optional<int> status = worker_.reap();
    output_ = worker_.take_output();
    if (!clock_.has_begun()) return Result::not_begun;
    record.status = {StatusCode::crash, fmt::format("in {} the process {}", clock_.stage(),
                                                    status ? describe_process_end(*status)
                                                           : "closed its socket and went on")};
    const std::string said = last_line(output_);
    if (!said.empty()) record.status.reason += ", saying: " + said;
    return Result::recorded;
  }

  WorkerProcess& worker_;
  const Case& case_;
  const CellOptions& options_;
  const std::int64_t resident_limit_;  ///< bytes of host memory
  bool worker_ends_ = false;
  StageClock clock_;
  std::string output_;
};

namespace {

/// The command that starts a worker for cases of kernels of these plug-ins, or of none.
std::vector<std::string> worker_command(const std::vector<std::string>& plugins,
                                        std::span<const Case> cases) {
  std::vector<std::string> command{"/proc/self/exe", "worker"};
  if (wants_python(plugins, cases, Device::available(DeviceKind::cuda).ok())) {
    const Support& python = python_available();
    if (python.ok()) {
      std::vector<std::string> hosted = python_worker_command(plugins);
      add_cases_ahead(hosted, cases);
      return hosted;
    }
    command.insert(command.end(), {"--no-python", python.reason});
  }
  for (const std::string& plugin : plugins) {
    command.insert(command.end(), {"--plugin", std::filesystem::absolute(plugin).string()});
  }
  return command;
}

std::string plugin_file(const Case& c) {
  return plugin_of(c.kernel, c.problem().device);
}

}  // namespace

void set_workers(RunOptions& options, const std::vector<std::string>& plugins,
                 std::span<const Case> cases) {
  const auto cases_of = [&](const std::string& plugin) {
    std::vector<Case> chosen;
    std::ranges::copy_if(cases, std::back_inserter(chosen),
                         [&](const Case& c) { return plugin_file(c) == plugin; });
    return chosen;
  };
  options.worker = worker_command({}, cases_of(""));
  for (const std::string& plugin : plugins) {
    options.plugin_workers[plugin] = worker_command({plugin}, cases_of(plugin));
  }
}

// A tenth of the memory is left to the system and this process.
Runner::Runner(RunOptions options)
    : options_(std::move(options)), host_limit_mib_((available_memory() / 10 * 9) >> 20) {}

CellOptions Runner::options_for(const Case& c) const {
  CellOptions options = options_.cell;
  std::int64_t& limit = options.limits.memory_limit_mib;
  if (limit == 0 && c.device == "cpu") limit = host_limit_mib_;
  options.own_files = own_files(c);
  if (!options_.dump.empty()) {
    options.dump = std::filesystem::absolute(options_.dump) / dump_folder_name(c);
  }
  return options;
}

void Runner::provide_worker(const Case& c) {
  const std::string plugin = plugin_file(c);
  const std::string guest = plugin.empty() ? "" : c.kernel;
  if (guest != guest_) worker_.reset();
  guest_ = guest;
  if (worker_) return;
  worker_ = std::make_unique<WorkerProcess>(plugin.empty() ? options_.worker
                                                           : options_.plugin_workers.at(plugin));
}

bool Runner::run_cell(const Case& c, Record& record, std::string& output) {
  const CellOptions options = options_for(c);
  const std::int64_t resident_limit_mib =
      c.device == "cpu" ? options.limits.memory_limit_mib : host_limit_mib_;
  const nlohmann::json request{{"case", c}, {"options", options}};
  // A second try, since a worker that ends before it begins the cell was broken by an earlier one.
  for (int tries = 0; tries < 2; ++tries) {
    provide_worker(c);
    record = Record{};
    record.c = c;
    Attempt attempt(*worker_, c, options, resident_limit_mib << 20);
    const auto result = attempt.run(request, record, output);
    if (result == Attempt::Result::interrupted) return false;
    const bool alive = result == Attempt::Result::recorded && !attempt.worker_ends() &&
                       worker_->resident_bytes() > 0;
    if (!alive) worker_.reset();
    if (result == Attempt::Result::recorded) return true;
  }
  record.status = {StatusCode::crash, "no worker process could be started"};
  const std::string said = last_line(output);
  if (!said.empty()) record.status.reason += ": " + said;
  return true;
}

bool Runner::run(std::span<const Case> cases, RunListener& listener) {
  return run_cells(cases, listener, [this](const Case& c, Record& record, std::string& output) {
    return run_cell(c, record, output);
  });
}

}  // namespace longca
