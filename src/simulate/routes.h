#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "simulate/cluster.h"
#include "simulate/fluid_links.h"

namespace longca::simulate {

/// The links of so many ranks, one per GPU, node by node: the ports of each GPU into and out of its
/// node's NVLink switch, NICs and, if the fabric is oversubscribed, each node's links to others.
class Routes {
 public:
  Routes(const Cluster& cluster, int ranks, FluidLinks& links);

  bool crosses(int from, int to) const { return from / gpus_ != to / gpus_; }
  /// The links from one rank to another.
  std::vector<int> path(int from, int to) const;
  /// A rank's order of sending: peers behind it first, so that ranks do not all send to the same
  /// one; of other nodes first the next node's, there first the GPU at the same place, whose NIC no
  /// other GPU of this node sends to at the time.
  std::int64_t order(int from, int to) const;

 private:
  int nic_of(int rank) const { return rank / gpus_ * nics_ + rank % gpus_ * nics_ / gpus_; }

  int ranks_, gpus_, nodes_;
  int nics_ = 0;
  int out_ = 0, in_ = 0, nic_out_ = 0, nic_in_ = 0;  ///< the first of each kind of link
  std::optional<int> up_;  ///< that of the nodes' links, if there are any: up, then down
};

}  // namespace longca::simulate
