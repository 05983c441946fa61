#include "simulate/routes.h"

#include <algorithm>
#include <cstdint>

#include "core/rounding.h"

namespace longca::simulate {
namespace {

/// Returns the first of `count` links.
int add_links(FluidLinks& links, int count, double bytes_per_second) {
  int first = -1;
  for (int i = 0; i < count; ++i) {
    const int link = links.add_link(bytes_per_second);
    if (i == 0) first = link;
  }
  return first;
}

}  // namespace

Routes::Routes(const Cluster& cluster, int ranks, FluidLinks& links)
    : ranks_(ranks),
      gpus_(static_cast<int>(cluster.platform.node.gpus)),
      nodes_(ceil_div(ranks, gpus_)) {
  const double port = cluster.platform.links.bytes_per_second;
  out_ = add_links(links, ranks, port);
  in_ = add_links(links, ranks, port);
  if (!cluster.fabric) return;
  const Fabric& fabric = *cluster.fabric;
  // The NICs of a GPU that has several are one link.
  nics_ = static_cast<int>(std::min<std::int64_t>(fabric.nics, gpus_));
  const double of_node = static_cast<double>(fabric.nics) * fabric.nic_bytes_per_second;
  nic_out_ = add_links(links, nodes_ * nics_, of_node / nics_);
  nic_in_ = add_links(links, nodes_ * nics_, of_node / nics_);
  if (fabric.oversubscription > 1) {
    up_ = add_links(links, 2 * nodes_, of_node / fabric.oversubscription);
  }
}

std::vector<int> Routes::path(int from, int to) const {
  if (!crosses(from, to)) return {out_ + from, in_ + to};
  std::vector<int> path = {nic_out_ + nic_of(from), nic_in_ + nic_of(to)};
  if (up_) {
    path.push_back(*up_ + from / gpus_);
    path.push_back(*up_ + nodes_ + to / gpus_);
  }
  return path;
}

std::int64_t Routes::order(int from, int to) const {
  if (!crosses(from, to)) return (to - from + ranks_) % ranks_;
  const std::int64_t nodes = (to / gpus_ - from / gpus_ + nodes_) % nodes_;
  return nodes * gpus_ + (to % gpus_ - from % gpus_ + gpus_) % gpus_;
}

}  // namespace longca::simulate
