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
/// hello.
class RankServer {
 public:
  /// Listens on a Unix socket in `folder`, which it makes, or, for ranks of other hosts
  /// (`network`), on a port of this host. Throws std::system_error if the system refuses.
  RankServer(const std::filesystem::path& folder, bool network);
  ~RankServer();
  RankServer(const RankServer&) = delete;
  RankServer& operator=(const RankServer&) = delete;

  /// The address that ranks connect to.
  const std::string& address() const { return address_; }

  struct Event {
    enum class Kind : std::uint8_t { nothing, hello, message, gone, noise };
    Kind kind = Kind::nothing;
    int rank = 0;
    nlohmann::json message;
  };
  /// Waits for the next event of any rank, `timeout` or a signal. `gone` comes once per rank, after
  /// all that it has sent. `noise`: it sent something that is no message.
  Event wait(std::chrono::milliseconds timeout);

  /// False if that rank is not there (any more).
  bool send(int rank, const nlohmann::json& message);
  /// Closes all ranks' sockets, which tells them to end.
  void hang_up();
  /// By rank: the hello of every rank since the start.
  const std::map<int, RankHello>& hellos() const { return hellos_; }
  bool has(int rank) const { return ranks_.contains(rank); }

 private:
  struct Peer {
    std::unique_ptr<LineChannel> channel;
    std::optional<int> rank;  ///< once it has said hello
    bool open = true;
  };

  void listen_in(const std::filesystem::path& folder);
  void listen_on_network();
  void accept_one();
  std::optional<Event> next_event(Peer& peer);
  std::optional<Event> next_event();

  FileDescriptor socket_;
  std::string address_;
  std::filesystem::path path_;  ///< of a Unix socket
  std::vector<std::unique_ptr<Peer>> peers_;
  std::map<int, Peer*> ranks_;
  std::map<int, RankHello> hellos_;
};

}  // namespace longca
