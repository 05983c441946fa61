#include "run_verbs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <unordered_set>
#include <vector>

#include "bench/plugin_loader.h"
#include "bench/record/environment.h"
#include "bench/record/record.h"
#include "bench/run/dry_run.h"
#include "bench/run/run_cells.h"
#include "bench/suite/axes.h"
#include "core/error.h"
#include "report/html.h"
#include "report/table.h"
#include "verbs.h"

namespace longca {
namespace {

namespace fs = std::filesystem;

void set_limit(const char* option, const std::optional<double>& given, double& limit) {
  if (!given) return;
  if (!(std::isfinite(*given) && *given > 0))
    throw_input_error("{} {} is not above 0", option, *given);
  limit = *given;
}

constexpr int kSystemError = 71;  // EX_OSERR: lost ranks that this process cannot start anew

/// This process's arguments, from the system; the program without its folder, which means nothing
/// on another machine.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  if (!arguments.empty()) arguments.front() = fs::path(arguments.front()).filename().string();
  return arguments;
}

/// Completes records and writes them to the file before passing them on.
class RecordListener : public RunListener {
 public:
  RecordListener(RecordWriter& writer, RunListener& progress, std::vector<Record>& records)
      : writer_(writer), progress_(progress), records_(records), env_(collect_environment()) {
    env_["argv"] = own_arguments();
  }

  void started(const Case& c) override { progress_.started(c); }
  void finished(const Record& record, const std::string& output) override {
    records_.push_back(record);
    records_.back().env = env_;
    writer_.append(records_.back());
    progress_.finished(record, output);
  }

 private:
  RecordWriter& writer_;
  RunListener& progress_;
  std::vector<Record>& records_;
  nlohmann::json env_;
};

fs::path output_path(const RecordArguments& arguments, const Suite& suite) {
  if (!arguments.out.empty()) return arguments.out;
  std::error_code error;
  fs::create_directories("results", error);
  if (error) throw_input_error("cannot make folder 'results': {}", error.message());
  return fs::path("results") / (suite.name + ".jsonl");
}

/// Removes from the list the cells that the file has already, and returns their records. The file
/// keeps records of other cells.
std::vector<Record> take_finished(const fs::path& path, std::vector<Case>& cases) {
  if (!fs::exists(path)) return {};
  std::vector<Record> finished = latest_records(read_records(path).records);
  std::unordered_set<std::string> wanted;
  for (const Case& c : cases) wanted.insert(c.key());
  std::erase_if(finished, [&](const Record& record) { return !wanted.contains(record.c.key()); });
  std::unordered_set<std::string> done;
  for (const Record& record : finished) done.insert(record.c.key());
  std::erase_if(cases, [&](const Case& c) { return done.contains(c.key()); });
  return finished;
}

bool is_failure(const Record& record) {
  switch (record.status.code) {
    case StatusCode::wrong:
    case StatusCode::crash:
    case StatusCode::timeout:
    case StatusCode::oom:
      return true;
    default:
      return false;
  }
}

/// Runs the remaining cells and appends to `records`. False if the run ended early.
bool run_rest(const RecordArguments& arguments, const std::vector<Case>& cases,
              const fs::path& path, const CellsFunction& run_cells, std::vector<Record>& records) {
  RecordWriter writer(path,
                      arguments.resume ? RecordWriter::Mode::resume : RecordWriter::Mode::replace);
  Progress progress(cases.size(), arguments.progress_style());
  RecordListener listener(writer, progress, records);
  return run_cells(cases, listener);
}

}  // namespace

void RunArguments::add_options(CLI::App& verb) {
  verb.add_option("-a,--axis", axes, "values of an axis, as tokens=1K:8K:x2; repeatable")
      ->type_name("AXIS=LIST")
      ->allow_extra_args(false);
  verb.add_option("--plugin", plugins, "kernels from a .so or .py file; repeatable")
      ->type_name("FILE")
      ->allow_extra_args(false);
  verb.add_option("--case-limit", case_limit_s, "a cell that takes longer is `timeout`")
      ->type_name("S");
  verb.add_option("--memory-limit", memory_limit_mib, "a cell that takes more is `oom`")
      ->type_name("MIB");
  verb.add_flag("--quiet", quiet, "no progress");
}

Suite RunArguments::load() const {
  for (const std::string& plugin : plugins) {
    describe_plugin(plugin, std::min(kPluginLimit, case_limit_s.value_or(kPluginLimit)));
  }
  Suite chosen = load_suite(suite);
  AxisValues overrides;
  for (const std::string& axis : axes) parse_axis_argument(axis, overrides);
  override_axes(chosen, overrides);
  set_limit("--time-limit", time_limit_s, chosen.limits.time_limit_s);
  set_limit("--case-limit", case_limit_s, chosen.limits.case_limit_s);
  if (memory_limit_mib) {
    if (*memory_limit_mib < 1)
      throw_input_error("--memory-limit {} is not above 0", *memory_limit_mib);
    chosen.limits.memory_limit_mib = *memory_limit_mib;
  }
  return chosen;
}

Progress::Style RunArguments::progress_style() const {
  return quiet ? Progress::Style::silent : Progress::style_of_stderr();
}

void refuse_axes_of_ranks(const Suite& suite, std::string_view verb) {
  const auto axis = axis_of_ranks(suite.axes);
  if (!axis) return;
  throw_input_error("the axis '{}' is of cells over ranks, which {} does not run: use longca cp",
                    *axis, verb);
}

int exit_code_of_signal(int signal) {
  return 128 + signal;
}

void RecordArguments::add_options(CLI::App& verb) {
  verb.add_option("SUITE", suite,
                  fmt::format("a name of `list suites`, or FILE.toml (default {})", suite))
      ->type_name("");
  RunArguments::add_options(verb);
  verb.add_option("--time-limit", time_limit_s, "timing a cell stops here at the latest")
      ->type_name("S");
  verb.add_option("--out", out, "default results/SUITE.jsonl, and .html beside it")
      ->type_name("FILE.jsonl");
  verb.add_flag("--resume", resume, "keep what --out has; run the cells it lacks");
  verb.add_flag("--dry-run", dry_run, "list the cells, FLOPs and memory; run none");
  verb.add_flag("--strict", strict, "exit 1 if a cell is wrong, crash, timeout, oom");
}

int run_recorded(const RecordArguments& arguments, const Suite& suite, CaseList list,
                 const CellsFunction& run_cells) {
  if (arguments.dry_run) {
    print_dry_run(std::cout, list, suite.limits);
    return 0;
  }
  const fs::path path = output_path(arguments, suite);
  const std::size_t all = list.cases.size();
  std::vector<Record> records;
  if (arguments.resume) records = take_finished(path, list.cases);
  const InterruptGuard guard;
  if (!run_rest(arguments, list.cases, path, run_cells, records)) {
    const int signal = InterruptGuard::signal();
    fmt::print(stderr, "longca: {}; {} of {} cells are in {}, add --resume to run the rest\n",
               signal != 0 ? "interrupted" : "the launch has lost ranks", records.size(), all,
               path.string());
    return signal != 0 ? exit_code_of_signal(signal) : kSystemError;
  }
  print_table(std::cout, records, terminal_table_options());
  if (arguments.out.empty()) {
    const fs::path page = fs::path(path).replace_extension(".html");
    write_html(records, page);
    fmt::print("{} and {} written\n", path.string(), page.string());
  }
  if (arguments.strict && std::ranges::any_of(records, is_failure)) throw VerdictFailed{};
  return 0;
}

}  // namespace longca
