#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/status.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// A rank's links to the other ranks of its cell. `available` and `connect` are collective.
struct RankTeam {
  RankControl& control;
  int ranks_per_node = 1;
  /// Whether the ranks can use a transport: the same answer on every rank.
  std::function<Support(const std::string& transport)> available;
  /// Makes a new communicator, for one cell.
  std::function<std::unique_ptr<Communicator>(const std::string& transport)> connect;
  /// Called when this rank's device has waited long for the others', and when it continues. May be
  /// empty.
  std::function<void(bool waits)> on_device_wait = {};
};

/// The ranks of one launch.
class RankTeams {
 public:
  virtual ~RankTeams() = default;
  virtual RankControl& all() = 0;
  /// The first `ranks` of them as a team, valid until the next call; null on the others. Collective
  /// over all.
  virtual RankTeam* first(int ranks) = 0;
};

/// Thrown on all ranks together: one of them cannot go on, and no communication is pending.
class Refused : public std::exception {
 public:
  explicit Refused(Status status) : status_(std::move(status)) {}
  const char* what() const noexcept override { return status_.reason.c_str(); }
  const Status& status() const { return status_; }

 private:
  Status status_;
};

/// Runs `step`, which must not communicate, on every rank. Unless it is ok on all of them, throws
/// Refused on all with the first failing rank's status, naming that rank unless all have the same
/// reason. An exception from `step` becomes its status, naming `stage`. Collective.
void together(RankControl& control, std::string_view stage, const std::function<Status()>& step);

}  // namespace longca
