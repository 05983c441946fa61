#include "parallel/partition/sharding_cache.h"

namespace longca {

/// The others wait meanwhile: they need the same partition.
std::shared_ptr<const Sharding> ShardingCache::get(int cp_ranks,
                                                   const std::function<Sharding()>& make) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<const Sharding>& made = made_[cp_ranks];
  if (!made) made = std::make_shared<const Sharding>(make());
  return made;
}

std::vector<int> ShardingCache::order(int cp_ranks, int node,
                                      const std::function<std::vector<int>()>& make) {
  const std::lock_guard lock(mutex_);
  std::vector<int>& made = orders_[{cp_ranks, node}];
  if (made.empty()) made = make();
  return made;
}

}  // namespace longca
