#pragma once

#include "cost/platform_fields.h"
#include "simulate/cluster.h"

namespace longca::simulate {

/// Calls visit.section(name, meaning, measured) and visit.field(key, meaning, value) for the
/// fabric.
template <typename AnyFabric, typename Visitor>
void visit_fabric(AnyFabric& fabric, Visitor&& visit) {
  visit.section("fabric", "Links between nodes.", fabric.measured);
  visit.field("nodes", "Largest number of nodes.", fabric.nodes);
  visit.field("nics", "NICs of a node, which its GPUs share evenly; a GPU may have several.",
              fabric.nics);
  visit.field("nic_bytes_per_second", "Rate of a NIC, in each direction.",
              fabric.nic_bytes_per_second);
  visit.field("seconds_per_exchange", "Time of an exchange, however small.",
              fabric.seconds_per_exchange);
  visit.field("seconds_per_message", "Time of each message more.", fabric.seconds_per_message);
  visit.field("oversubscription", "Rate of a node's NICs over that of its links to other nodes.",
              fabric.oversubscription);
  visit.field("kernel_slowdown", "Part of a kernel's rate that a message over a NIC takes.",
              fabric.kernel_slowdown);
}

/// As visit_fabric, of both errors.
template <typename AnyCluster, typename Visitor>
void visit_errors(AnyCluster& cluster, Visitor&& visit) {
  const char* p90 = "What 90 % of cells are off by at most, as a share.";
  visit.section("error", "How far simulated times are from measured ones.", cluster.error.measured);
  visit.field("p90", p90, cluster.error.p90);
  visit.section("error_by_rates", "The same of kernels timed by their records on one GPU.",
                cluster.error_by_rates.measured);
  visit.field("p90", p90, cluster.error_by_rates.p90);
}

}  // namespace longca::simulate
