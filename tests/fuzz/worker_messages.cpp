// What a worker sends over its socket.

#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "bench/run/protocol.h"
#include "fuzz.h"
#include "report/sample_records.h"

namespace longca::fuzz {

using testing::sample_records;

void fuzz(std::string_view text) {
  std::array<int, 2> ends{};
  require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "no sockets");
  LineChannel channel(ends[0], kSecret);
  const bool fits = ::send(ends[1], text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL) ==
                    static_cast<ssize_t>(text.size());
  ::close(ends[1]);
  if (!fits) return;
  const Case asked = sample_records()[0].c;
  try {
    while (const auto message = channel.receive()) {
      if (!message->contains("record")) continue;
      const Record record = judge_record(*message, asked, CellOptions{});
      require(record.c == asked, "a record of another case is believed");
    }
  } catch (const BadMessage& bad) {
    require(bad.what()[0] != '\0', "an error without a sentence");
  }
}

}  // namespace longca::fuzz
