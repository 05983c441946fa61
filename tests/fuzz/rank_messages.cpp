// What a stranger or a rank sends to the parent's server.

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "bench/launch/rank_server.h"
#include "core/file_descriptor.h"
#include "fuzz.h"

namespace longca::fuzz {
namespace {

std::filesystem::path scratch_folder() {
  std::string name = std::filesystem::temp_directory_path() / "longca-fuzz-XXXXXX";
  require(::mkdtemp(name.data()) != nullptr, "no folder");
  return name;
}

FileDescriptor connected_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  require(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0,
          "no connection");
  return socket;
}

}  // namespace

void fuzz(std::string_view text) {
  using namespace std::chrono_literals;
  static const std::filesystem::path folder = scratch_folder();
  RankServer server(folder, {.ranks = 2, .secret = kSecret});
  {
    const FileDescriptor stranger = connected_to(server.address());
    ::send(stranger.get(), text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  for (int i = 0; i < 8; ++i) {
    const RankServer::Event event = server.wait(0ms);
    require(event.rank >= 0 && event.rank < 2, "a rank that is not expected");
  }
}

}  // namespace longca::fuzz
