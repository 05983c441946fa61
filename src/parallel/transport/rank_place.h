#pragma once

#include <array>
#include <span>

#include "core/status.h"

namespace longca {

/// The host and GPU of a rank, as exchange_records sends it.
struct RankPlace {
  std::array<char, 128> host{};  ///< host name
  std::array<char, 64> boot{};   ///< boot id: tells machines of one name apart
  std::array<char, 32> gpu{};    ///< PCI bus id

  bool same_host(const RankPlace& other) const { return host == other.host && boot == other.boot; }
};

/// Ok if no two ranks have one GPU. `places` are by rank.
Support one_gpu_each(std::span<const RankPlace> places);

/// Ok if all ranks are on the host of `rank`, as peer copies need it.
Support all_on_host_of(int rank, std::span<const RankPlace> places);

}  // namespace longca
