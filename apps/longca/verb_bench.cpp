#include <cstdlib>
#include <memory>

#include "recorded_run.h"
#include "verbs.h"

namespace longca {
namespace {

int bench(const RecordArguments& arguments) {
  const Suite suite = arguments.load();
  refuse_axes_of_ranks(suite, "bench");
  const auto run_cells = [&](std::span<const Case> cases, RunListener& listener) {
    RunOptions options;
    options.worker = worker_command(arguments.plugins, cases);
    options.cell.limits = suite.limits;
    return Runner(options).run(cases, listener);
  };
  return run_recorded(arguments, suite, expand(suite), run_cells);
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("bench", "Verifies, times and records kernels on this machine");
  auto arguments = std::make_shared<RecordArguments>();
  arguments->add_options(*verb);
  verb->footer("Example: longca bench -a mask=causal,document -a tokens=1K:8K:x2 --out my.jsonl");
  verb->callback([arguments] {
    if (const int code = bench(*arguments)) std::exit(code);
  });
}

}  // namespace longca
