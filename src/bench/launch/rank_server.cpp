#include "bench/launch/rank_server.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "core/process.h"

namespace longca {
namespace {

constexpr int kBacklog = 1024;

[[noreturn]] void throw_system_error(const char* what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

RankServer::RankServer(const std::filesystem::path& folder, bool network) {
  network ? listen_on_network() : listen_in(folder);
  if (::listen(socket_.get(), kBacklog) != 0) throw_system_error("no socket for the ranks");
}

RankServer::~RankServer() {
  if (!path_.empty()) ::unlink(path_.c_str());
}

void RankServer::listen_in(const std::filesystem::path& folder) {
  static int number = 0;  // ranks must not find the socket of an earlier start
  path_ = folder / fmt::format("ranks{}", number++);
  address_ = path_.string();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (address_.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    throw_system_error("the folder for temporary files (TMPDIR)");
  }
  std::memcpy(address.sun_path, address_.c_str(), address_.size() + 1);
  socket_ = FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket_.is_open() ||
      ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw_system_error("no socket for the ranks");
  }
}

void RankServer::listen_on_network() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  socket_ = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket_.is_open() ||
      ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw_system_error("no port for the ranks");
  }
  address_ = fmt::format("{}:{}", host_name(), ntohs(address.sin_port));
}

void RankServer::accept_one() {
  const int socket = ::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC);
  if (socket < 0) return;
  peers_.push_back(std::make_unique<Peer>());
  peers_.back()->channel = std::make_unique<LineChannel>(socket);
}

std::optional<RankServer::Event> RankServer::next_event(Peer& peer) {
  try {
    if (auto message = peer.channel->next()) {
      if (peer.rank) return Event{Event::Kind::message, *peer.rank, std::move(*message)};
      // A process that does not say hello first is no rank.
      const auto hello = message->at("hello").get<RankHello>();
      if (ranks_.contains(hello.rank))
        throw nlohmann::json::other_error::create(501, "twice", nullptr);
      peer.rank = hello.rank;
      ranks_[hello.rank] = &peer;
      hellos_[hello.rank] = hello;
      return Event{Event::Kind::hello, hello.rank, {}};
    }
  } catch (const nlohmann::json::exception&) {
    if (peer.rank) return Event{Event::Kind::noise, *peer.rank, {}};
    peer.open = false;
  }
  if (peer.open || !peer.rank) return std::nullopt;
  const int rank = *peer.rank;
  peer.rank.reset();
  ranks_.erase(rank);
  return Event{Event::Kind::gone, rank, {}};
}

std::optional<RankServer::Event> RankServer::next_event() {
  for (const auto& peer : peers_) {
    if (auto event = next_event(*peer)) return event;
  }
  std::erase_if(peers_, [](const auto& peer) { return !peer->open && !peer->rank; });
  return std::nullopt;
}

RankServer::Event RankServer::wait(std::chrono::milliseconds timeout) {
  if (auto event = next_event()) return *event;
  std::vector<pollfd> polls{{socket_.get(), POLLIN, 0}};
  for (const auto& peer : peers_) polls.push_back({peer->channel->socket(), POLLIN, 0});
  if (::poll(polls.data(), polls.size(), static_cast<int>(timeout.count())) <= 0) return {};
  for (std::size_t i = 1; i < polls.size(); ++i) {
    if (polls[i].revents != 0) peers_[i - 1]->open = peers_[i - 1]->channel->read_available();
  }
  if (polls[0].revents != 0) accept_one();
  if (auto event = next_event()) return *event;
  return {};
}

bool RankServer::send(int rank, const nlohmann::json& message) {
  const auto found = ranks_.find(rank);
  return found != ranks_.end() && found->second->channel->send(message);
}

void RankServer::hang_up() {
  ranks_.clear();
  peers_.clear();
}

}  // namespace longca
