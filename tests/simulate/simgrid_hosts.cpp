#include "simulate/simgrid_hosts.h"

#include <fmt/format.h>

#include <algorithm>

namespace longca::simulate::testing {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

}  // namespace

namespace s4u = simgrid::s4u;

SimgridHosts::SimgridHosts(const Cluster& cluster, int ranks, s4u::NetZone& zone)
    : zone_(zone), ranks_(at(ranks)) {
  const int gpus = static_cast<int>(cluster.platform.node.gpus);
  const int nodes = (ranks + gpus - 1) / gpus;
  const double across = cluster.fabric ? cluster.fabric->kernel_slowdown : 0;
  const auto rates = [&](double within) {
    return std::vector{1.0, 1 - within, 1 - across, 1 - std::max(within, across)};
  };
  const auto kernel = rates(cluster.platform.node.covered_cost_within);
  const auto memory = rates(cluster.platform.node.memory_slowdown_within);
  const auto out = links("out", ranks, cluster.platform.links.bytes_per_second);
  const auto in = links("in", ranks, cluster.platform.links.bytes_per_second);
  for (int rank = 0; rank < ranks; ++rank) {
    RankHosts& hosts = ranks_[at(rank)];
    hosts.gpu = zone_.create_host(fmt::format("gpu {}", rank), kernel)->seal();
    hosts.memory = zone_.create_host(fmt::format("memory {}", rank), memory)->seal();
    hosts.timer = zone_.create_host(fmt::format("timer {}", rank), 1);
    hosts.timer->set_core_count(1 << 20)->seal();
    hosts.port = end_point("port", rank, {out[at(rank)]}, {in[at(rank)]});
  }
  if (cluster.fabric) add_nics(*cluster.fabric, gpus, nodes);
}

void SimgridHosts::add_nics(const Fabric& fabric, int gpus, int nodes) {
  const int nics = std::min(static_cast<int>(fabric.nics), gpus);
  const double of_node = static_cast<double>(fabric.nics) * fabric.nic_bytes_per_second;
  const auto out = links("nic out", nodes * nics, of_node / nics);
  const auto in = links("nic in", nodes * nics, of_node / nics);
  const auto up = links("up", nodes, of_node / fabric.oversubscription);
  const auto down = links("down", nodes, of_node / fabric.oversubscription);
  for (int rank = 0; rank < std::ssize(ranks_); ++rank) {
    const int node = rank / gpus;
    const int nic = node * nics + rank % gpus * nics / gpus;
    ranks_[at(rank)].nic =
        end_point("nic", rank, {out[at(nic)], up[at(node)]}, {down[at(node)], in[at(nic)]});
  }
}

SimgridHosts::Links SimgridHosts::links(const std::string& kind, int count,
                                        double bytes_per_second) {
  Links made;
  for (int i = 0; i < count; ++i) {
    s4u::Link* link = zone_.create_link(fmt::format("{} {}", kind, i), bytes_per_second);
    made.emplace_back(link->set_latency(0)->seal());
  }
  return made;
}

s4u::Host* SimgridHosts::end_point(const char* kind, int rank, const Links& out, const Links& in) {
  s4u::Host* host = zone_.create_host(fmt::format("{} {}", kind, rank), 1)->seal();
  zone_.add_route(host->get_netpoint(), nullptr, nullptr, nullptr, out, false);
  zone_.add_route(nullptr, host->get_netpoint(), nullptr, nullptr, in, false);
  return host;
}

}  // namespace longca::simulate::testing
