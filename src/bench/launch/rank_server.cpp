#include "bench/launch/rank_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "core/process.h"

namespace longca {
namespace {

constexpr int kBacklog = 1024;

[[noreturn]] void throw_system_error(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

RankServer::RankServer(const std::filesystem::path& folder, Options options)
    : options_(std::move(options)) {
  options_.host.empty() ? listen_in(folder) : listen_on_network();
  if (::listen(socket_.get(), kBacklog) != 0) {
    throw_system_error("cannot listen for the ranks at " + address_);
  }
}

RankServer::~RankServer() {
  stop_listening();
}

void RankServer::stop_listening() {
  socket_.close();
  if (!path_.empty()) ::unlink(path_.c_str());
  path_.clear();
}

void RankServer::listen_in(const std::filesystem::path& folder) {
  static int number = 0;  // ranks must not find the socket of an earlier start
  path_ = folder / fmt::format("ranks{}", number++);
  address_ = path_.string();
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (address_.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    throw_system_error(fmt::format("{}, in the folder for temporary files (TMPDIR)", address_));
  }
  std::memcpy(address.sun_path, address_.c_str(), address_.size() + 1);
  socket_ = FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_.is_open() ||
      ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw_system_error("cannot listen for the ranks at " + address_);
  }
}

void RankServer::listen_on_network() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  socklen_t size = sizeof address;
  if (::inet_pton(AF_INET, options_.host.c_str(), &address.sin_addr) != 1) {
    throw_input_error("'{}' is no IPv4 address to listen at for the ranks", options_.host);
  }
  socket_ = FileDescriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket_.is_open() ||
      ::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      ::getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw_system_error(fmt::format("cannot listen for the ranks at {}", options_.host));
  }
  const bool any = address.sin_addr.s_addr == htonl(INADDR_ANY);
  address_ = fmt::format("{}:{}", any ? host_name() : options_.host, ntohs(address.sin_port));
}

namespace {

/// Whether the other end of a Unix socket is a process of this user; true for other sockets.
bool is_own_user(int socket) {
  ucred other{};
  socklen_t size = sizeof other;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) != 0) return true;
  return other.pid == 0 || other.uid == ::geteuid();
}

}  // namespace

void RankServer::accept_one() {
  FileDescriptor socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket.is_open() || !is_own_user(socket.get())) return;
  auto peer = std::make_unique<Peer>();
  peer->channel = std::make_unique<LineChannel>(socket.release(), options_.secret, kMaxHello);
  peer->hello_deadline = Clock::now() + kHelloLimit;
  // Reads a hello that has already arrived before close_strangers can close the connection.
  peer->open = peer->channel->read_available();
  peers_.push_back(std::move(peer));
}

/// Makes the peer a rank. False for a stranger.
bool RankServer::greet(Peer& peer, const nlohmann::json& message) {
  const auto hello = message.at("hello").get<RankHello>();
  if (hello.ranks != options_.ranks) other_ranks_ = hello.ranks;
  if (hello.ranks != options_.ranks || hello.rank < 0 || hello.rank >= options_.ranks ||
      hellos_.contains(hello.rank)) {
    return false;
  }
  peer.rank = hello.rank;
  peer.channel->set_max_line(LineChannel::kMaxLine);
  ranks_[hello.rank] = &peer;
  hellos_[hello.rank] = hello;
  if (std::ssize(hellos_) == options_.ranks) stop_listening();
  return true;
}

std::optional<RankServer::Event> RankServer::next_event(Peer& peer) {
  try {
    if (auto message = peer.channel->next()) {
      if (peer.rank) {
        return Event{.kind = Event::Kind::message, .rank = *peer.rank, .message = *message};
      }
      if (greet(peer, *message)) return Event{.kind = Event::Kind::hello, .rank = *peer.rank};
      peer.open = false;
    }
  } catch (const BadMessage& bad) {
    peer.open = false;
    if (peer.rank) {
      const int rank = *std::exchange(peer.rank, std::nullopt);
      ranks_.erase(rank);
      return Event{.kind = Event::Kind::noise, .rank = rank, .noise = bad.what()};
    }
  } catch (const nlohmann::json::exception&) {
    peer.open = false;
  }
  if (peer.open || !peer.rank) return std::nullopt;
  const int rank = *std::exchange(peer.rank, std::nullopt);
  ranks_.erase(rank);
  return Event{.kind = Event::Kind::gone, .rank = rank};
}

std::optional<RankServer::Event> RankServer::next_event() {
  for (const auto& peer : peers_) {
    if (auto event = next_event(*peer)) return event;
  }
  close_strangers();
  return std::nullopt;
}

/// Closes connections without a hello that are late, too many, or came when all ranks were there.
void RankServer::close_strangers() {
  const auto now = Clock::now();
  const auto strangers = static_cast<std::size_t>(
      std::ranges::count_if(peers_, [](const auto& peer) { return !peer->rank && peer->open; }));
  std::size_t too_many = strangers > kMaxStrangers ? strangers - kMaxStrangers : 0;
  std::erase_if(peers_, [&](const auto& peer) {
    if (peer->rank) return false;
    if (!peer->open || !socket_.is_open() || now > peer->hello_deadline) return true;
    return too_many > 0 && too_many-- > 0;
  });
}

void RankServer::read_from_peers() {
  for (const auto& peer : peers_) {
    if (peer->open) peer->open = peer->channel->read_available();
  }
}

RankServer::Event RankServer::wait(std::chrono::milliseconds timeout) {
  if (auto event = next_event()) return *event;
  std::vector<pollfd> polls{{socket_.get(), POLLIN, 0}};  // ignored where it is closed: negative
  for (const auto& peer : peers_) polls.push_back({peer->channel->socket(), POLLIN, 0});
  if (::poll(polls.data(), polls.size(), static_cast<int>(timeout.count())) <= 0) return {};
  read_from_peers();
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
