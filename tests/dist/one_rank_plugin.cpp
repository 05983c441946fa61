// `flash`, but the pass throws on rank 1 alone: what ranks of one case see of each other's faults.

#include <stdexcept>

#include "support/rank_faults.h"

namespace {

using namespace longca;

constexpr testing::RankFault kFaults[] = {
    {"fault_one_rank",
     [](const ForwardArgs&) { throw std::runtime_error("only this rank throws"); }},
};

}  // namespace

const longca::PluginInfo* longca_plugin() {
  static const PluginInfo info{.name = "one rank", .add_kernels = [](KernelRegistry& registry) {
                                 testing::add_rank_faults(registry, registry.find("flash"),
                                                          kFaults);
                               }};
  return &info;
}
