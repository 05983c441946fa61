#include "parallel/transport/handshake.h"

#include <cstddef>

namespace longca {

std::vector<Handshake::Number> Handshake::expect(std::span<const Group* const> groups) {
  struct Coming {
    std::uint32_t groups = 0;
    bool ended = false;
  };
  std::vector<Coming> coming(pairs_.size());
  for (const Group* group : groups) {
    for (const int peer : group->from) {
      Coming& of_peer = coming[static_cast<std::size_t>(peer)];
      of_peer.ended |= !group->lands_early;
      of_peer.groups += of_peer.ended ? 0 : 1;
    }
  }
  std::vector<Number> grants;
  for (std::size_t i = 0; i < coming.size(); ++i) {
    const int peer = static_cast<int>(i);
    grant(peer, pair(peer).received + coming[i].groups, grants);
  }
  return grants;
}

Handshake::Numbers Handshake::start(const Group& group) {
  Numbers numbers;
  for (const int peer : group.from) {
    const std::uint32_t number = ++pair(peer).received;
    grant(peer, number, numbers.grants);
    numbers.arrived.push_back({peer, number});
  }
  for (const int peer : group.to) {
    const std::uint32_t number = ++pair(peer).sent;
    numbers.granted.push_back({peer, number});
    numbers.arrivals.push_back({peer, number});
  }
  return numbers;
}

void Handshake::grant(int peer, std::uint32_t value, std::vector<Number>& grants) {
  const std::uint32_t more = value - pair(peer).granted;
  if (more == 0 || more > UINT32_MAX / 2) return;  // granted before
  pair(peer).granted = value;
  grants.push_back({peer, value});
}

}  // namespace longca
