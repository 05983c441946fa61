#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "parallel/partition/sharding.h"

namespace longca {

/// The shardings of one problem, by number of CP ranks, each made by whoever asks for it first, so
/// that plans of a thousand ranks partition their mask once. Threads may share it.
class ShardingCache {
 public:
  std::shared_ptr<const Sharding> get(int cp_ranks, const std::function<Sharding()>& make);
  /// The order of a sharding's parts (node_order) over nodes of `node` CP ranks.
  std::vector<int> order(int cp_ranks, int node, const std::function<std::vector<int>()>& make);

 private:
  std::mutex mutex_;
  std::map<int, std::shared_ptr<const Sharding>> made_;
  std::map<std::pair<int, int>, std::vector<int>> orders_;  ///< by CP ranks and node
};

}  // namespace longca
