#include "bench/ranks/protocol.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"

namespace longca {
namespace {

[[noreturn]] void refuse(const std::string& address, const std::string& reason) {
  throw_input_error("cannot connect to longca cp at {}: {}", address, reason);
}

FileDescriptor connect_to_path(const std::string& path) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  if (path.size() >= sizeof(name.sun_path)) refuse(path, "the path is too long for a socket");
  std::memcpy(name.sun_path, path.data(), path.size());
  FileDescriptor end(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!end.is_open() ||
      ::connect(end.get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0) {
    refuse(path, std::strerror(errno));
  }
  return end;
}

FileDescriptor connect_to_host(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos) refuse(address, "it is neither a path nor HOST:PORT");
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int fault = ::getaddrinfo(address.substr(0, colon).c_str(),
                                  address.substr(colon + 1).c_str(), &hints, &found);
  if (fault != 0) refuse(address, ::gai_strerror(fault));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owned(found, ::freeaddrinfo);
  int error = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    FileDescriptor end(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    if (end.is_open() && ::connect(end.get(), one->ai_addr, one->ai_addrlen) == 0) return end;
    error = errno;
  }
  refuse(address, std::strerror(error));
}

}  // namespace

void to_json(nlohmann::json& json, const RankHello& hello) {
  json = {{"rank", hello.rank}, {"ranks", hello.ranks},   {"pid", hello.pid},
          {"host", hello.host}, {"commit", hello.commit}, {"suite_hash", hello.suite_hash}};
}

namespace {

/// Reads an int; throws for numbers that do not fit one exactly.
int int_at(const nlohmann::json& json, const char* key) {
  const auto& value = json.at(key);
  constexpr int kMax = std::numeric_limits<int>::max();
  const bool fits = value.is_number_unsigned() ? value.get<std::uint64_t>() <= kMax
                                               : value.is_number_integer() && value >= -kMax;
  if (!fits) throw nlohmann::json::out_of_range::create(406, key, &json);
  return value.get<int>();
}

}  // namespace

void from_json(const nlohmann::json& json, RankHello& hello) {
  hello.rank = int_at(json, "rank");
  hello.ranks = int_at(json, "ranks");
  hello.pid = int_at(json, "pid");
  json.at("host").get_to(hello.host);
  json.at("commit").get_to(hello.commit);
  json.at("suite_hash").get_to(hello.suite_hash);
}

std::unique_ptr<LineChannel> connect_to_parent(const std::string& address, std::string secret) {
  const bool is_path = address.find('/') != std::string::npos;
  FileDescriptor end = is_path ? connect_to_path(address) : connect_to_host(address);
  return std::make_unique<LineChannel>(end.release(), std::move(secret));
}

}  // namespace longca
