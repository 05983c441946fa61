#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "simulate/cluster.h"
#include "simulate/program.h"

// Small passes and clusters whose times are known in closed form.

namespace longca::simulate::testing {

/// Nodes of 8 GPUs with ports of 100 bytes/s and one NIC of 10 bytes/s per GPU, without latencies.
inline Cluster ideal_cluster(std::int64_t nodes = 1) {
  Cluster cluster;
  cluster.name = "ideal";
  cluster.platform = cost::default_platform();
  cluster.platform.links = {"", 100, 0, 0, 0};
  cluster.platform.node.covered_cost_within = 0;
  cluster.platform.node.memory_slowdown_within = 0;
  cluster.fabric = Fabric{"", nodes, 8, 10, 0, 0, 1, 0};
  return cluster;
}

inline TimedOp computing(double seconds, std::vector<int> after = {}) {
  return {Lane::compute, 0, seconds, seconds, std::move(after), -1};
}
/// A pass over memory.
inline TimedOp copying(double seconds, std::vector<int> after = {}) {
  return {Lane::compute, 0, seconds, 0, std::move(after), -1};
}

/// Adds an exchange to a rank's pass: messages of so many bytes to and from peers.
inline void add_exchange(RankWork& work, const std::vector<std::pair<int, std::int64_t>>& sends,
                         const std::vector<std::pair<int, std::int64_t>>& receives,
                         std::vector<int> after = {}) {
  TimedExchange exchange;
  exchange.op = static_cast<int>(work.ops.size());
  for (const auto& [peer, bytes] : sends) {
    exchange.sends.push_back({peer, bytes, TensorRole::k, false});
  }
  for (const auto& [peer, bytes] : receives) {
    exchange.receives.push_back({peer, bytes, TensorRole::k, false});
  }
  TimedOp op{
      Lane::communication, 0, 0, 0, std::move(after), static_cast<int>(work.exchanges.size())};
  work.ops.push_back(std::move(op));
  work.exchanges.push_back(std::move(exchange));
}

/// Every rank computes for a second while it sends `bytes` to the rank `distance` behind it, and
/// computes for another second when that has arrived.
inline std::vector<RankWork> ring(int ranks, std::int64_t bytes, int distance = 1) {
  std::vector<RankWork> works(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    RankWork& work = works[static_cast<std::size_t>(rank)];
    work.ops.push_back(computing(1));
    add_exchange(work, {{(rank + distance) % ranks, bytes}},
                 {{(rank - distance + ranks) % ranks, bytes}});
    work.ops.push_back(computing(1, {1}));
  }
  return works;
}

}  // namespace longca::simulate::testing
