// What the runner adds: to a kernel's time, against a bare loop around the same call; and between
// cells.
//
//   runner_overhead [cells|burst|sustained|all [KERNEL [TOKENS [ROUNDS]]]]      default: all flash
//   1024 9

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "attention/api/registry.h"
#include "attention/inputs/inputs.h"
#include "bench/cell/tensors.h"
#include "bench/measure/device_clock.h"
#include "bench/measure/statistics.h"
#include "bench/record/environment.h"
#include "bench/record/record_writer.h"
#include "bench/run/runner.h"
#include "bench/run/worker.h"
#include "bench/suite/axes.h"

namespace longca {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

Case cell(const std::string& kernel, std::int64_t tokens, const std::string& mode) {
  Case c;
  c.kernel = kernel;
  c.mask = "causal";
  c.tokens = tokens;
  c.heads_q = c.heads_k = 8;
  c.dtype = DType::float32;
  c.mode = mode;
  return canonical(c);
}

/// The last record of a run.
class Keep : public RunListener {
 public:
  void finished(const Record& r, const std::string& /*output*/) override { record = r; }
  Record record;
};

/// Time of one call (ms) as `longca bench` measures it: in a worker process, verified, recorded.
double time_by_runner(const Case& c, double seconds) {
  RunOptions options;
  options.worker = {"/proc/self/exe"};
  options.cell.limits.time_limit_s = seconds;
  Keep keep;
  Runner(options).run(std::vector<Case>{c}, keep);
  if (!keep.record.status.ok()) {
    fmt::print(stderr, "{}: {}\n", c.key(), keep.record.status.reason);
    std::exit(1);
  }
  return keep.record.metrics.at("time_ms");
}

/// The same call in a loop with a clock around it, and nothing else; `cold` flushes caches in
/// between.
double time_by_loop(const Case& c, double seconds, bool cold) {
  const Problem problem = c.problem();
  const GeneratedMask generated = generate_mask(c.mask_spec());
  const Inputs inputs = make_inputs(problem, c.seed);
  const Outputs outputs = Outputs::for_problem(problem);
  const auto plan = KernelRegistry::global().find(c.kernel).plan(problem, generated.mask);
  const ForwardArgs args = outputs.forward_args(inputs);
  const auto flusher = make_device_clock(problem.device);
  std::vector<double> samples;
  for (int i = 0; i < 3; ++i) plan->forward(args);
  const auto begin = Clock::now();
  while (seconds_since(begin) < seconds) {
    if (cold) flusher->flush_caches();
    const auto start = Clock::now();
    plan->forward(args);
    samples.push_back(seconds_since(start) * 1e3);
  }
  return median(samples);
}

/// Alternates runner and loop, so that a drift of the machine meets both.
void compare(const std::string& kernel, std::int64_t tokens, const std::string& mode, int rounds) {
  const double seconds = mode == "burst" ? 0.5 : 1.0;  // a sustained run takes a second at least
  const Case c = cell(kernel, tokens, mode);
  std::vector<double> ratios;
  fmt::print("{} {} causal, 8 heads, float32, {}:\n", kernel, tokens, mode);
  for (int round = 0; round < rounds; ++round) {
    const double loop = time_by_loop(c, seconds, mode == "burst");
    const double runner = time_by_runner(c, seconds);
    ratios.push_back(runner / loop);
    fmt::print("  loop {:.4f} ms, runner {:.4f} ms, {:+.2f} %\n", loop, runner,
               (runner / loop - 1) * 100);
  }
  const auto interval = median_interval(ratios);
  fmt::print("  median of the differences {:+.2f} %", (median(ratios) - 1) * 100);
  if (interval) {
    fmt::print(", 95 % interval {:+.2f} … {:+.2f} %", (interval->low - 1) * 100,
               (interval->high - 1) * 100);
  }
  fmt::print("\n");
}

/// Writes every record, as `longca bench` does.
class Write : public RunListener {
 public:
  explicit Write(const std::filesystem::path& path) : writer_(path, RecordWriter::Mode::replace) {}
  void finished(const Record& record, const std::string& /*output*/) override {
    Record complete = record;
    complete.env = collect_environment();
    writer_.append(complete);
  }

 private:
  RecordWriter writer_;
};

/// Wall time per cell of cells too small to take any, tensors, checks and messages included: all of
/// it counted as the runner's own.
void between_cells(const std::string& kernel) {
  constexpr int kCells = 500;
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / fmt::format("runner_overhead_{}.jsonl", ::getpid());
  const std::vector<Case> cells(kCells, cell(kernel, 16, "burst"));
  RunOptions options;
  options.worker = {"/proc/self/exe"};
  options.cell.timed = false;
  double seconds = 0;
  double first = 0;
  {
    Write write(path);
    Runner runner(options);
    const auto begin = Clock::now();
    runner.run(std::span(cells).first(1), write);
    first = seconds_since(begin);
    const auto second = Clock::now();
    runner.run(cells, write);
    seconds = seconds_since(second);
  }
  std::filesystem::remove(path);
  fmt::print(
      "between cells: {:.2f} ms of the runner's own; {:.1f} ms for the first, which starts the "
      "worker\n",
      seconds / kCells * 1e3, first * 1e3);
}

int run(const std::vector<std::string>& arguments) {
  if (arguments.size() == 2 && arguments[0] == "--socket") {
    run_worker(std::stoi(arguments[1]), {});
    return 0;
  }
  const auto argument = [&](std::size_t i, const char* otherwise) {
    return i < arguments.size() ? arguments[i] : std::string(otherwise);
  };
  const std::string what = argument(0, "all");
  const std::string kernel = argument(1, "flash");
  const std::int64_t tokens = std::stoll(argument(2, "1024"));
  const int rounds = std::stoi(argument(3, "9"));
  if (what == "all" || what == "cells") between_cells(kernel);
  for (const char* mode : {"burst", "sustained"}) {
    if (what == "all" || what == mode) compare(kernel, tokens, mode, rounds);
  }
  return 0;
}

}  // namespace
}  // namespace longca

int main(int argc, char** argv) {
  return longca::run({argv + 1, argv + argc});
}
