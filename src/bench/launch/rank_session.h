#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/launch/launcher.h"
#include "bench/launch/rank_server.h"
#include "core/process.h"

namespace longca {

/// Between two looks at the ranks and their launcher.
constexpr std::chrono::milliseconds kPollInterval{50};

/// "rank 3", "ranks 0, 2" or "ranks 0 to 499, 501", of ascending ranks.
std::string list_ranks(const std::vector<int>& ranks);

/// One start of ranks: the launcher's process and the ranks' sockets. The destructor ends all of
/// the processes on this host.
class RankSession {
 public:
  /// Starts `ranks` ranks. `scratch`: a folder of this run alone. Throws std::system_error.
  RankSession(const RankStart& start, int ranks, const std::filesystem::path& scratch);
  ~RankSession();
  RankSession(const RankSession&) = delete;
  RankSession& operator=(const RankSession&) = delete;

  enum class Start : std::uint8_t { ready, failed, interrupted };
  /// Waits until all ranks have agreed to work together. Sets `reason` if it failed. Throws
  /// InputError if the ranks refused each other: different commits or suites.
  Start wait_until_ready(double limit_s, std::string& reason);

  int ranks() const { return ranks_; }
  /// Whether the ranks belong to a launch that already existed: they cannot be started again.
  bool is_found() const { return found_; }
  RankServer& server() { return *server_; }
  /// Ranks of this host, by rank.
  const std::map<int, pid_t>& local_pids() const { return pids_; }
  bool launcher_has_ended() const { return launcher_->has_ended(); }

  /// Closes the sockets, at which idle ranks end, and waits until they are gone.
  void finish();
  /// Ends all processes that have not ended yet, and waits until they are gone.
  void end();
  /// Bytes that launcher and ranks have printed since the last take_output, kept in RAM.
  std::int64_t printed_bytes() const { return launcher_->printed_bytes(); }
  /// What launcher and ranks have printed since the last call.
  std::string take_output() { return launcher_->take_output(); }

 private:
  void note_hello(int rank);
  void throw_if_refused(const RankServer::Event& event);
  std::string why_not_started(std::optional<int> gone);
  std::string who_is_missing() const;
  bool is_rank(pid_t pid) const;

  int ranks_;
  bool found_;
  std::unique_ptr<RankServer> server_;
  std::unique_ptr<ChildProcess> launcher_;
  std::map<int, pid_t> pids_;
};

}  // namespace longca
