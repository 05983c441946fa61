#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention/adapters/python/python_kernel.h"
#include "bench/plugin_loader.h"
#include "bench/run/worker.h"
#include "run_verbs.h"
#include "verbs.h"

namespace longca {
namespace {

void bench(const RecordArguments& arguments) {
  const Suite suite = arguments.load();
  refuse_axes_of_ranks(suite, "bench");
  const auto run_cells = [&](std::span<const Case> cases, RunListener& listener) {
    RunOptions options;
    set_workers(options, arguments.plugins, cases);
    options.cell.limits = suite.limits;
    return Runner(options).run(cases, listener);
  };
  CaseList list = expand(suite, cells_to_make(arguments));
  if (arguments.dry_run) {
    show_dry_run(arguments, suite, std::move(list), size_of(suite));
    return;
  }
  run_recorded(arguments, suite, std::move(list), arguments.files(suite), run_cells);
}

}  // namespace

void add_bench(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("bench", "Verifies, times and records kernels on this machine");
  auto arguments = std::make_shared<RecordArguments>();
  arguments->add_options(*verb);
  verb->footer("Example: longca bench -a mask=causal,document -a tokens=1K:8K:x2 --out my.jsonl");
  verb->callback([arguments] { bench(*arguments); });
}

void add_worker(CLI::App& app) {
  // An empty group hides it: only the runner starts workers.
  CLI::App* verb =
      app.add_subcommand("worker", "Runs the cells that come over a socket")->group("");
  auto socket = std::make_shared<int>(-1);
  auto plugins = std::make_shared<std::vector<std::string>>();
  verb->add_option("--socket", *socket, "number of the open socket")->required();
  verb->add_option("--plugin", *plugins, "kernels from a shared library");
  auto describe = std::make_shared<bool>(false);
  verb->add_flag("--describe", *describe, "send what the plug-in's kernels can do, and end");
  auto no_python = std::make_shared<std::string>();
  verb->add_option("--no-python", *no_python, "why Python's kernels cannot run");
  verb->callback([=] {
    if (*describe) return answer_for_plugin(*socket, plugins->at(0));
    set_python_unavailable(*no_python);
    run_worker(*socket, *plugins);
  });
}

}  // namespace longca
