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

}  // namespace longca
