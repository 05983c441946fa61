#pragma once

#include <functional>
#include <memory>
#include <string>

#include "core/status.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// What binds a rank to the others. `available` and `connect` are collective.
struct RankTeam {
  RankControl& control;
  int ranks_per_node = 1;
  /// Whether the ranks can use a transport: the same answer on every rank.
  std::function<Support(const std::string& transport)> available;
  /// Connects the ranks anew, for one cell.
  std::function<std::unique_ptr<Communicator>(const std::string& transport)> connect;
  /// Hears that this rank's device has long waited for the others', and that it goes on. May be
  /// empty.
  std::function<void(bool waits)> on_device_wait = {};
};

/// The ranks of one launch.
class RankTeams {
 public:
  virtual ~RankTeams() = default;
  virtual RankControl& all() = 0;
  /// The first `ranks` of them as a team, which lives until the next call; null on the others.
  /// Collective over all.
  virtual RankTeam* first(int ranks) = 0;
};

}  // namespace longca
