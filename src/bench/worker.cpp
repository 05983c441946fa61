#include "bench/worker.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "bench/cell.h"
#include "bench/plugin_loader.h"
#include "bench/protocol.h"
#include "core/thread_pool.h"

namespace longca {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kLimitsData = false;  // sanitizers map terabytes of shadow memory
#else
constexpr bool kLimitsData = true;
#endif

/// Private writable memory of this process in bytes, as RLIMIT_DATA counts it.
std::int64_t data_in_use() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmData:")) return std::stoll(line.substr(7)) << 10;
  }
  return 0;
}

/// Memory that kernels take beside the tracker is refused too, instead of the system's killer
/// coming for some process. The slack is for what is not the cell's: stacks of threads, the flush
/// buffer. 0 lifts the limit.
void limit_data(std::int64_t memory_limit) {
  constexpr std::int64_t kSlack = std::int64_t{1} << 30;
  constexpr std::int64_t kPerThread = std::int64_t{16} << 20;
  rlimit limit{};
  if (!kLimitsData || getrlimit(RLIMIT_DATA, &limit) != 0) return;
  const std::int64_t bytes = data_in_use() + memory_limit + kSlack + kPerThread * available_cpus();
  limit.rlim_cur =
      memory_limit == 0 ? limit.rlim_max : std::min(limit.rlim_max, static_cast<rlim_t>(bytes));
  setrlimit(RLIMIT_DATA, &limit);
}

}  // namespace

void run_worker(int socket, const std::vector<std::string>& plugins) {
  LineChannel channel(socket);
  for (const std::string& plugin : plugins) load_plugin(plugin);
  CellRunner runner([&](std::string_view stage) { channel.send({{"stage", stage}}); });
  std::int64_t data_limit = 0;
  while (const auto message = channel.receive()) {
    const auto c = message->at("case").get<Case>();
    const auto options = message->at("options").get<CellOptions>();
    // A GPU's driver and libraries take host memory as they like; the limit is the device's there.
    const std::int64_t wanted = c.device == "cpu" ? options.limits.memory_limit_mib << 20 : 0;
    if (wanted != data_limit) limit_data(data_limit = wanted);
    channel.send({{"stage", "set-up"}});
    const Record record = runner.run(c, options);
    const bool ends = runner.device_lost();
    if (!channel.send({{"record", record}, {"ends", ends}})) return;
    if (ends) {
      std::fflush(nullptr);
      ::_exit(0);  // destructors could wait for the lost device for ever
    }
  }
}

}  // namespace longca
