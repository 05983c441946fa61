#include <memory>
#include <string>
#include <vector>

#include "attention/adapters/python/python_kernel.h"
#include "bench/worker.h"
#include "verbs.h"

namespace longca {

void add_worker(CLI::App& app) {
  // An empty group hides it: only the runner starts workers.
  CLI::App* verb =
      app.add_subcommand("worker", "Runs the cells that come over a socket")->group("");
  auto socket = std::make_shared<int>(-1);
  auto plugins = std::make_shared<std::vector<std::string>>();
  verb->add_option("--socket", *socket, "number of the open socket")->required();
  verb->add_option("--plugin", *plugins, "kernels from a shared library");
  auto no_python = std::make_shared<std::string>();
  verb->add_option("--no-python", *no_python, "why Python's kernels cannot run");
  verb->callback([=] {
    set_python_unavailable(*no_python);
    run_worker(*socket, *plugins);
  });
}

}  // namespace longca
