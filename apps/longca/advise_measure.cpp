#include "advise_measure.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <ostream>
#include <unordered_map>
#include <utility>

#include "advise/advice_text.h"
#include "bench/cell/steps.h"
#include "bench/run/runner.h"
#include "bench/suite/suite.h"
#include "core/counted.h"
#include "core/error.h"
#include "core/printable.h"
#include "report/format.h"
#include "run_verbs.h"

namespace longca {
namespace {

/// "results/advise-20260131-235959.jsonl", in universal time.
std::string file_of_now() {
  std::error_code error;
  std::filesystem::create_directories("results", error);
  if (error) throw_input_error("the folder results cannot be made: {}", error.message());
  return fmt::format("results/advise-{:%Y%m%d-%H%M%S}.jsonl", fmt::gmtime(std::time(nullptr)));
}

/// The most that a cell should take: a worker's start, the check, and timing with its warm-up.
double most_seconds(const advise::OpenCell& cell, const RunLimits& limits) {
  constexpr double kStart = 1;
  constexpr double kRepetitions = 7;
  constexpr double kUntimed = 3;
  const double call = cell.expected_ms / 1e3;
  const double timing =
      std::clamp(kRepetitions * call, limits.time_limit_s, limits.sample_budget_s + call);
  return kStart + limits.verify_budget_s + timing + kUntimed * call;
}

}  // namespace

Measured measure_cells(std::span<const advise::OpenCell> cells, double seconds, std::string out,
                       std::span<const std::string> read, std::span<const std::string> plugins) {
  if (cells.empty()) return {};
  const SteadyClock::time_point begin = SteadyClock::now();
  RecordArguments arguments;
  Suite suite = arguments.load();
  suite.name = "advise";
  arguments.plugins.assign(plugins.begin(), plugins.end());  // the suite would load them again
  // What a check may take leaves time for several cells; records say what part it saw.
  suite.limits.verify_budget_s = std::min(suite.limits.verify_budget_s, seconds / 6);
  // Of a kernel without records nobody knows how long it takes.
  suite.limits.case_limit_s = std::min(suite.limits.case_limit_s, std::max(1.0, seconds));
  arguments.out = out.empty() ? file_of_now() : std::move(out);
  RunFiles files;
  for (const std::string& file : read) files.reads("--records", file);
  for (const std::string& plugin : plugins) files.reads("--plugin", plugin);
  std::vector<Case> cases;
  std::unordered_map<std::string, double> lasts;
  for (const advise::OpenCell& cell : cells) {
    cases.push_back(cell.c);
    lasts[cell.c.key()] = most_seconds(cell, suite.limits);
  }
  RunOptions options;
  set_workers(options, arguments.plugins, cases);
  options.cell.limits = suite.limits;
  Runner runner(options);
  const auto may_begin = [&](const Case& c) {
    return c == cases.front() || seconds_since(begin) + lasts.at(c.key()) <= seconds;
  };
  const auto run_cell = [&](std::span<const Case> one, RunListener& listener) {
    return runner.run(one, listener);
  };
  Measured measured{
      .file = arguments.out,
      .records = run_while(arguments, suite, cases, std::move(files), may_begin, run_cell)};
  measured.left = cells.size() - measured.records.size();
  measured.seconds = seconds_since(begin);
  return measured;
}

nlohmann::json measured_json(const Measured& measured,
                             std::span<const advise::ChangedChoice> changes) {
  using nlohmann::json;
  json whole{{"file", measured.file},
             {"seconds", measured.seconds},
             {"cells", json::array()},
             {"left", measured.left},
             {"changes", json::array()}};
  for (const Record& record : measured.records) {
    whole["cells"].push_back({{"key", record.c.key()}, {"status", to_string(record.status.code)}});
  }
  const auto kernel_of_choice = [](const std::optional<advise::Choice>& choice) {
    return choice ? json(choice->c.kernel) : json(nullptr);
  };
  for (const advise::ChangedChoice& change : changes) {
    whole["changes"].push_back({{"problem", change.problem.problem_key()},
                                {"pass", to_string(change.problem.pass)},
                                {"before", kernel_of_choice(change.before)},
                                {"after", kernel_of_choice(change.after)}});
  }
  return whole;
}

void print_measured(std::ostream& out, const Measured& measured,
                    std::span<const advise::ChangedChoice> changes, int width) {
  if (measured.records.empty()) {
    out << "Nothing was measured: no cell could change a choice.\n\n";
    return;
  }
  const std::string summary = fmt::format(
      "Measured {} in {:.0f} s, in {}{}", counted(measured.records.size(), "cell"),
      measured.seconds, printable(measured.file),
      measured.left > 0 ? fmt::format("; {} more did not fit the time", measured.left) : "");
  out << with_hanging_indent(summary, width, 2) << '\n';
  for (const advise::ChangedChoice& change : changes) {
    const std::string title = printable(advise::title_of({.problem = change.problem}));
    const std::string became = printable(advise::describe(change));
    out << with_hanging_indent("  " + title, width, 4) << '\n'
        << with_hanging_indent("    " + became, width, 6) << '\n';
  }
  out << '\n';
}

}  // namespace longca
