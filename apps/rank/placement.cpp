#include "placement.h"

#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/cuda/cuda_device.h"
#include "core/thread_pool.h"

namespace longca {
namespace {

constexpr int kKeep = 0;  ///< of setenv: what is there stays

/// The host, and which of its CPUs this process may run on: equal for processes that share them.
std::string own_cpus() {
  std::string text = host_name() + ':';
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0) return text;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &cpus)) text += std::to_string(cpu) + ' ';
  }
  return text;
}

/// How many ranks have the same text as this one.
int count_equal(RankControl& control, const std::string& mine) {
  std::string all;
  for (const std::string& text : control.gather(mine)) all += text + '\n';
  all = control.broadcast(all);
  int equal = 0;
  for (std::size_t begin = 0; begin < all.size();) {
    const std::size_t end = all.find('\n', begin);
    equal += all.compare(begin, end - begin, mine) == 0 ? 1 : 0;
    begin = end + 1;
  }
  return equal;
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

void take_share_of_host(RankControl& control, int local_rank) {
  const int sharers = count_equal(control, own_cpus());
  const int threads = std::max(1, available_cpus() / std::max(1, sharers));
  setenv("LONGCA_THREADS", std::to_string(threads).c_str(), kKeep);
  // Where each rank is shown one GPU, that is its own.
  const int gpus = count_cuda_devices();
  if (gpus > 0) setenv("LONGCA_DEVICE", std::to_string(local_rank % gpus).c_str(), kKeep);
}

bool die_with_parent() {
  const pid_t parent = getppid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  return getppid() == parent && parent != 1;
}

}  // namespace longca
