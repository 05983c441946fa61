#include "bench/run/memory_watch.h"

#include <fmt/format.h>

namespace longca {

std::string memory_excess(std::int64_t resident, std::int64_t printed, std::int64_t limit,
                          std::int64_t slack) {
  if (printed > kMaxPrinted) {
    return fmt::format("printed more than the {} MiB that are kept", kMaxPrinted >> 20);
  }
  if (resident > limit + slack) {
    return fmt::format("passed the memory limit of {} MiB", limit >> 20);
  }
  if (resident + printed > limit + slack) {
    return fmt::format("passed the memory limit of {} MiB with the {} MiB that it printed",
                       limit >> 20, printed >> 20);
  }
  return {};
}

}  // namespace longca
