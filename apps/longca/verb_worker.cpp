#include <memory>
#include <string>
#include <vector>

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
  verb->callback([=] { run_worker(*socket, *plugins); });
}

}  // namespace longca
