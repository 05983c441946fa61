#include "parallel/transport/rank_place.h"

#include <fmt/format.h>

#include <cstddef>

namespace longca {

Support one_gpu_each(std::span<const RankPlace> places) {
  for (std::size_t a = 0; a < places.size(); ++a) {
    for (std::size_t b = a + 1; b < places.size(); ++b) {
      if (places[a].same_host(places[b]) && places[a].gpu == places[b].gpu) {
        return Support::unavailable(
            fmt::format("ranks {} and {} share the GPU {} of {}: start at most one rank per GPU", a,
                        b, places[a].gpu.data(), places[a].host.data()));
      }
    }
  }
  return {};
}

Support all_on_host_of(int rank, std::span<const RankPlace> places) {
  const RankPlace& own = places[static_cast<std::size_t>(rank)];
  for (std::size_t other = 0; other < places.size(); ++other) {
    if (own.same_host(places[other])) continue;
    return Support::unavailable(
        fmt::format("peer copies inside one host, but rank {} is on {} and rank {} on {}", rank,
                    own.host.data(), other, places[other].host.data()));
  }
  return {};
}

}  // namespace longca
