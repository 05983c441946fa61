#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

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
  /// Is told when this rank's device has waited long for the others', and when it goes on. May be
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

/// Thrown on all ranks at once: one of them cannot go on, all know it, and no communication is
/// pending between them.
class Refused : public std::exception {
 public:
  explicit Refused(Status status) : status_(std::move(status)) {}
  const char* what() const noexcept override { return status_.reason.c_str(); }
  const Status& status() const { return status_; }

 private:
  Status status_;
};

/// Runs a step without communication on every rank, then lets all ranks know whether all can go on.
/// Otherwise throws Refused with the sentence of the first rank that cannot, and its number unless
/// all ranks say the same. What `step` throws counts as its status. Collective.
void together(RankControl& control, std::string_view stage, const std::function<Status()>& step);

}  // namespace longca
