#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "bench/run/run_cells.h"
#include "bench/suite/cases.h"
#include "core/counted.h"
#include "core/output_file.h"
#include "core/printable.h"
#include "run_verbs.h"
#include "verbs.h"

namespace longca {
namespace {

struct CheckArguments : RunArguments {
  std::string dump;
};

/// Counts outcomes, and prints the cells that failed on stdout.
class CheckListener : public RunListener {
 public:
  explicit CheckListener(Progress& progress) : progress_(progress) {}

  void started(const Case& c) override { progress_.started(c); }
  void finished(const Record& record, const std::string& output) override {
    progress_.finished(record, output);
    ++counts_[record.status.code];
    switch (record.status.code) {
      case StatusCode::wrong:
      case StatusCode::timeout:
      case StatusCode::crash:
      case StatusCode::oom:
        fmt::print("{}\n", printable(describe_record(record, progress_.axes_of(record.c))));
        break;
      default:
        break;
    }
  }

  std::size_t count(StatusCode code) const {
    const auto found = counts_.find(code);
    return found == counts_.end() ? 0 : found->second;
  }

  /// `cells`: how many were to be checked.
  void print_summary(std::size_t cells, bool complete) const {
    std::size_t checked = 0;
    std::string text;
    for (const auto& [code, number] : counts_) {
      if (code != StatusCode::unsupported && code != StatusCode::unavailable) checked += number;
      text += fmt::format(", {} {}", number, to_string(code));
    }
    const std::string all = counted(cells, "cell");
    const std::string of = checked == cells ? all : fmt::format("{} of {}", checked, all);
    fmt::print("{}{} checked{}\n", complete ? "" : "interrupted: ", of, text);
  }

 private:
  Progress& progress_;
  std::map<StatusCode, std::size_t> counts_;
};

void make_dump_folder(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw_file_error("make folder", folder, error.value());
}

void check(const CheckArguments& arguments) {
  const Suite suite = arguments.load();
  refuse_axes_of_ranks(suite, "check");
  const CaseList list = expand(suite);
  if (!arguments.dump.empty()) make_dump_folder(arguments.dump);
  RunOptions options;
  set_workers(options, arguments.plugins, list.cases);
  options.cell.timed = false;
  options.cell.limits = suite.limits;
  options.dump = arguments.dump;
  print_notices(arguments.notices(suite, list));
  const InterruptGuard guard;
  bool complete = false;
  std::size_t failed = 0;
  {
    Progress progress(list.cases.size(), arguments.progress_style());
    progress.tell_apart(list.cases);
    CheckListener listener(progress);
    complete = Runner(options).run(list.cases, listener);
    listener.print_summary(list.cases.size(), complete);
    failed = listener.count(StatusCode::wrong) + listener.count(StatusCode::crash) +
             listener.count(StatusCode::timeout);
  }
  if (!complete) throw EndedEarly{exit_code_of_signal(InterruptGuard::signal())};
  if (failed > 0) throw VerdictFailed{};
}

}  // namespace

void add_check(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("check", "Verifies kernels against float64, without timing");
  auto arguments = std::make_shared<CheckArguments>();
  arguments->add_options(*verb);
  verb->add_option("--dump", arguments->dump, "q k v do o lse dq dk dv (sink dsink).npy, mask.json")
      ->type_name("DIR");
  verb->footer(
      "Exit code 1 if any cell is wrong, crash or timeout.\n"
      "Example: longca check -a mask=causal,document -a tokens=1K -a dtype=float32");
  verb->callback([arguments] { check(*arguments); });
}

}  // namespace longca
