#include "recorded_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <unordered_set>
#include <vector>

#include "bench/dry_run.h"
#include "bench/environment.h"
#include "bench/interrupt.h"
#include "bench/record.h"
#include "core/error.h"
#include "report/html.h"
#include "report/table.h"
#include "verbs.h"

namespace longca {
namespace {

namespace fs = std::filesystem;

constexpr int kSystemError = 71;  // EX_OSERR: ranks were lost that nobody here can start anew

/// This process's arguments, from the system; the program by its name alone, since records travel
/// and folders of one machine say nothing elsewhere.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  if (!arguments.empty()) arguments.front() = fs::path(arguments.front()).filename().string();
  return arguments;
}

/// Completes records and writes them down before anything else hears of them.
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

/// Takes the cells that a file has already out of the list; what it has of other cells stays in it.
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

/// Runs what is left and adds to `records`. False if it ended early.
bool run_rest(const RecordArguments& arguments, const std::vector<Case>& cases,
              const fs::path& path, const CellsFunction& run_cells, std::vector<Record>& records) {
  RecordWriter writer(path,
                      arguments.resume ? RecordWriter::Mode::resume : RecordWriter::Mode::replace);
  Progress progress(cases.size(), arguments.progress_style());
  RecordListener listener(writer, progress, records);
  return run_cells(cases, listener);
}

}  // namespace

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
