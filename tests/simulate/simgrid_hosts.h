#pragma once

#include <array>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

#include "simulate/cluster.h"

namespace longca::simulate::testing {

/// One rank's hosts. Kernels run on `gpu`, passes over memory on `memory`; their pstates are their
/// rates beside messages: bit 0 for those within the node, bit 1 for those across nodes. `timer`
/// has cores for all that only takes time. Messages travel from `port` to `port` or from `nic` to
/// `nic`.
struct RankHosts {
  simgrid::s4u::Host* gpu = nullptr;
  simgrid::s4u::Host* memory = nullptr;
  simgrid::s4u::Host* timer = nullptr;
  simgrid::s4u::Host* port = nullptr;
  simgrid::s4u::Host* nic = nullptr;
  std::array<int, 2> moving = {0, 0};  ///< messages within the node and across, either direction

  void count_moving(std::size_t across, int change) {
    moving[across] += change;
    const auto beside = (moving[0] > 0 ? 1U : 0U) + (moving[1] > 0 ? 2U : 0U);
    gpu->set_pstate(beside);
    memory->set_pstate(beside);
  }
};

/// Hosts and links of a cluster in a star: each host has links out and links in.
class SimgridHosts {
 public:
  SimgridHosts(const Cluster& cluster, int ranks, simgrid::s4u::NetZone& zone);

  RankHosts& operator[](int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

 private:
  using Links = std::vector<simgrid::s4u::LinkInRoute>;

  void add_nics(const Fabric& fabric, int gpus, int nodes);
  Links links(const std::string& kind, int count, double bytes_per_second);
  /// A host that messages leave by `out` and reach by `in`.
  simgrid::s4u::Host* end_point(const char* kind, int rank, const Links& out, const Links& in);

  simgrid::s4u::NetZone& zone_;
  std::vector<RankHosts> ranks_;
};

}  // namespace longca::simulate::testing
