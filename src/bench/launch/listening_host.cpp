#include "bench/launch/listening_host.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "bench/launch/rank_machine.h"
#include "core/file_descriptor.h"
#include "core/process.h"

namespace longca {
namespace {

constexpr const char* kAnyAddress = "0.0.0.0";
constexpr const char* kLoopback = "127.0.0.1";
constexpr std::uint16_t kAnyPort = 9;  // of a socket that sends nothing

std::optional<sockaddr_in> resolve(const std::string& host) {
  addrinfo hints{};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return std::nullopt;
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  sockaddr_in address = *reinterpret_cast<const sockaddr_in*>(found->ai_addr);
  address.sin_port = htons(kAnyPort);
  return address;
}

std::string address_text(const sockaddr_in& address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  ::inet_ntop(AF_INET, &address.sin_addr, text.data(), text.size());
  return text.data();
}

bool is_loopback(const sockaddr_in& address) {
  return ntohl(address.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/// The address from which this host would send to `host`; nothing if it knows no way.
std::optional<std::string> source_towards(const std::string& host) {
  const auto there = resolve(host);
  if (!there) return std::nullopt;
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in here{};
  socklen_t size = sizeof here;
  if (!socket.is_open() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&*there), sizeof *there) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&here), &size) != 0) {
    return std::nullopt;
  }
  return address_text(here);
}

std::string own_address() {
  const auto own = resolve(host_name());
  return own && !is_loopback(*own) ? address_text(*own) : kAnyAddress;
}

}  // namespace

std::string listening_host(const RankStart& start) {
  if (!start.several_hosts) return "";
  if (start.hostfile.empty()) return own_address();
  std::set<std::string> sources;
  for (const std::string& host : hostfile_hosts(start.hostfile)) {
    // This host connects to its own address from that address.
    const auto own = host == host_name() ? std::nullopt : source_towards(host);
    if (own) sources.insert(*own);
  }
  if (sources.size() > 1) sources.erase(kLoopback);  // this host under another name
  if (sources.empty()) return own_address();
  return sources.size() == 1 ? *sources.begin() : kAnyAddress;
}

}  // namespace longca
