// mpirun -n 4 gpu_comm [check] [bandwidth] [math] [TRANSPORT…]: checks the transports between GPUs,
// one rank per GPU, and prints what they move. Exit code 77 says why nothing could be checked.
#include <cuda_runtime_api.h>
#include <fmt/core.h>

#include <cstdlib>
#include <exception>
#include <set>
#include <string>

#include "core/device.h"
#include "gpu/parallel/comm/bandwidth.h"
#include "gpu/parallel/comm/checks.h"
#include "parallel/transport/mpi/mpi_world.h"
#include "parallel/transport/transports.h"

namespace {

using namespace longca;
using namespace longca::testing;

constexpr int kSkipped = 77;

void say(RankControl& control, const std::string& text) {
  if (control.rank() == 0) fmt::print("{}\n", text);
  std::fflush(stdout);
}

void check(const std::string& transport, RankControl& control) {
  // Every case makes its own, in memory that the one before gave back.
  for (int times = 0; times < 3; ++times) check_relay(*make_cuda_communicator(transport, control));
  const auto communicator = make_cuda_communicator(transport, control);
  check_random_exchanges(*communicator, control);
  check_relay(*communicator);
  check_early_landing(*communicator, control);
  check_barrier(*communicator, control);
  say(control, fmt::format("{} ({}): right", transport, communicator->version()));
}

void bandwidth(const std::set<std::string>& transports, RankControl& control) {
  std::vector<NamedCommunicator> communicators;
  for (const std::string& transport : transports) {
    communicators.push_back({transport, make_cuda_communicator(transport, control)});
  }
  print_bandwidths(communicators, control);
}

/// The named transports that can be used; says why others cannot.
std::set<std::string> usable(const std::set<std::string>& words, RankControl& control) {
  std::set<std::string> transports;
  bool any_named = false;
  for (const std::string& name : cuda_transport_names()) any_named |= words.contains(name);
  for (const std::string& name : cuda_transport_names()) {
    if (any_named && !words.contains(name)) continue;
    const Support support = transport_available(name, control);
    if (support.ok()) {
      transports.insert(name);
    } else {
      say(control, fmt::format("{}: {}", name, support.reason));
    }
  }
  return transports;
}

int run(const std::set<std::string>& words, RankControl& control) {
  const std::set<std::string> transports = usable(words, control);
  if (transports.empty()) return kSkipped;
  if (words.contains("check")) {
    for (const std::string& transport : transports) check(transport, control);
  }
  if (words.contains("math") && control.rank() == 0) print_step_math();
  if (words.contains("bandwidth")) bandwidth(transports, control);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  set_transport_environment();
  MpiWorld world;
  setenv("LONGCA_DEVICE", std::to_string(world.local_rank()).c_str(), 0);
  try {
    return run({argv + 1, argv + argc}, world.control());
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {}: {}\n", world.control().rank(), error.what());
    world.abort(1);
  }
}
