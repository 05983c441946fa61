#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "bench/ranks/protocol.h"
#include "bench/run/protocol.h"
#include "core/file_descriptor.h"

namespace longca {

/// The parent's end of the ranks' sockets: listens, and has a channel to each rank that has said
/// hello. A connection that does not say hello with the secret, as one of the expected ranks that
/// are still missing, is closed without any effect. Stops listening once all ranks are there.
class RankServer {
 public:
  struct Options {
    int ranks = 1;         ///< how many are expected
    std::string secret{};  ///< of these ranks alone (make_secret)
    /// The IPv4 address of this host to listen on; "": on a Unix socket, for ranks of this host.
    std::string host{};
  };
  /// Listens on a Unix socket in `folder`, which it makes, or on a port of this host. Throws
  /// std::system_error if the system refuses.
  RankServer(const std::filesystem::path& folder, Options options);
  ~RankServer();
  RankServer(const RankServer&) = delete;
  RankServer& operator=(const RankServer&) = delete;

  /// The address that ranks connect to.
  const std::string& address() const { return address_; }

  struct Event {
    enum class Kind : std::uint8_t { nothing, hello, message, gone, noise };
    Kind kind = Kind::nothing;
    int rank = 0;  ///< in [0, ranks)
    nlohmann::json message{};
    std::string noise{};  ///< completes "rank 2 sent …": "what is no message"
  };
  /// Waits for the next event of any rank, at most `timeout` or until a signal. `gone` comes once
  /// per rank, after all that it has sent. `noise`: a line that is no message (BadMessage); the
  /// rank's channel is closed.
  Event wait(std::chrono::milliseconds timeout);

  /// False if that rank is not connected (any more).
  bool send(int rank, const nlohmann::json& message);
  /// Closes all ranks' sockets, which tells them to end.
  void hang_up();
  /// By rank: the hello of every rank since the start.
  const std::map<int, RankHello>& hellos() const { return hellos_; }
  bool has(int rank) const { return ranks_.contains(rank); }
  /// Of how many ranks a process said that it is one, if not of as many as there are to be.
  std::optional<int> other_ranks() const { return other_ranks_; }

  static constexpr std::chrono::seconds kHelloLimit{10};
  /// Connections at once that have not said hello; beyond, the oldest of them is closed.
  static constexpr std::size_t kMaxStrangers = 64;
  static constexpr std::size_t kMaxHello = 4096;  ///< bytes

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    std::unique_ptr<LineChannel> channel;
    Clock::time_point hello_deadline;
    std::optional<int> rank{};  ///< once it has said hello
    bool open = true;
  };

  void listen_in(const std::filesystem::path& folder);
  void listen_on_network();
  void stop_listening();
  void accept_one();
  void read_from_peers();
  void close_strangers();
  bool greet(Peer& peer, const nlohmann::json& message);
  std::optional<Event> next_event(Peer& peer);
  std::optional<Event> next_event();

  Options options_;
  FileDescriptor socket_;
  std::string address_;
  std::filesystem::path path_;                ///< of a Unix socket
  std::vector<std::unique_ptr<Peer>> peers_;  ///< in the order in which they came
  std::map<int, Peer*> ranks_;
  std::map<int, RankHello> hellos_;
  std::optional<int> other_ranks_;
};

}  // namespace longca
