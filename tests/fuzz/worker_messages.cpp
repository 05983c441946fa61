// What a worker sends over its socket.

#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "bench/run/protocol.h"
#include "fuzz.h"

namespace longca::fuzz {

void fuzz(std::string_view text) {
  std::array<int, 2> ends{};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "no sockets");
  LineChannel channel(ends[0]);
  const bool fits = ::send(ends[1], text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
                    static_cast<ssize_t>(text.size());
  ::close(ends[1]);
  if (!fits) return;
  try {
    while (auto message = channel.receive()) {
      accepts([&] {
        if (message->contains("record")) message->at("record").get<Record>();
        if (message->contains("case")) message->at("case").get<Case>();
        if (message->contains("options")) message->at("options").get<CellOptions>();
      });
    }
  } catch (const nlohmann::json::exception&) {
    return;  // as Runner::Attempt does
  }
}

}  // namespace longca::fuzz
