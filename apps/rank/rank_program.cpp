#include "rank_program.h"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "attention/adapters/python/python_kernel.h"
#include "bench/build_info.h"
#include "bench/launch/launcher.h"
#include "bench/plugin_loader.h"
#include "bench/ranks/protocol.h"
#include "bench/ranks/rank_runner.h"
#include "bench/ranks/rank_service.h"
#include "bench/ranks/rank_team.h"
#include "bench/run/state_watch.h"
#include "core/cuda/cuda_device.h"
#include "core/error.h"
#include "core/printable.h"
#include "core/process.h"
#include "core/process_keeper.h"
#include "core/thread_pool.h"
#include "parallel/transport/mpi/mpi_world.h"
#include "parallel/transport/transports.h"

namespace longca {
namespace {

constexpr int kKeep = 0;  ///< setenv's overwrite flag: a variable that is set stays

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

/// Sets this rank's share of its host as variables of the process: LONGCA_THREADS, its cores over
/// the ranks that may use the same ones, at least 1; LONGCA_DEVICE, one GPU per rank of the host in
/// order. Variables that are set already stay. Must precede the first thread and device.
/// Collective.
void take_share_of_host(RankControl& control, int local_rank) {
  const int sharers = count_equal(control, own_cpus());
  const int threads = std::max(1, available_cpus() / std::max(1, sharers));
  setenv("LONGCA_THREADS", std::to_string(threads).c_str(), kKeep);
  // Where each rank is shown one GPU, that is its own.
  const int gpus = count_cuda_devices();
  if (gpus > 0) setenv("LONGCA_DEVICE", std::to_string(local_rank % gpus).c_str(), kKeep);
}

/// The ranks of a node, as schemes see them: those of a host, or what LONGCA_RANKS_PER_NODE says,
/// to run plans of several nodes on one. The same on all ranks. Collective; throws InputError on
/// all.
int ranks_per_node(MpiWorld& world) {
  const char* wanted = std::getenv("LONGCA_RANKS_PER_NODE");
  const std::string text = world.control().broadcast(wanted == nullptr ? std::string() : wanted);
  const auto asked = asked_ranks_per_node(text);
  return asked.value_or(static_cast<int>(world.control().broadcast(world.local_size())));
}

std::string own_commit() {
  return build_info().commit + (build_info().dirty ? "+" : "");
}

/// Teams over MPI; between GPUs, transports replace its messages.
class MpiTeams : public RankTeams {
 public:
  MpiTeams(MpiWorld& world, int ranks_per_node, std::function<void(bool)> on_wait)
      : world_(world), ranks_per_node_(ranks_per_node), on_wait_(std::move(on_wait)) {}

  RankControl& all() override { return world_.control(); }

  RankTeam* first(int ranks) override {
    team_.reset();
    ranks_ = world_.first(ranks);
    if (!ranks_) return nullptr;
    team_ = std::make_unique<RankTeam>(
        RankTeam{.control = ranks_->control(),
                 .ranks_per_node = std::min(ranks, ranks_per_node_),
                 .available = [this](const std::string& transport) { return available(transport); },
                 .connect = [this](const std::string& transport) { return connect(transport); },
                 .on_device_wait = on_wait_});
    return team_.get();
  }

 private:
  Support available(const std::string& transport) {
    return transport == "mpi" ? Support{} : transport_available(transport, ranks_->control());
  }
  std::unique_ptr<Communicator> connect(const std::string& transport) {
    if (transport == "mpi") return ranks_->make_communicator();
    return make_cuda_communicator(transport, ranks_->control());
  }

  MpiWorld& world_;
  int ranks_per_node_;
  std::function<void(bool)> on_wait_;
  std::unique_ptr<MpiWorld> ranks_;
  std::unique_ptr<RankTeam> team_;
};

/// Connects to the parent and says hello. Throws InputError on all ranks if one of them cannot.
std::unique_ptr<LineChannel> meet_parent(MpiWorld& world, const RankArguments& arguments) {
  RankControl& control = world.control();
  const std::string own_secret = take_secret();
  const std::string address_of_zero = control.broadcast(arguments.address);
  const std::string secret_of_zero = control.broadcast(own_secret);
  const bool as_zero = arguments.address == kAddressOfRank0;
  std::unique_ptr<LineChannel> channel;
  std::string fault;
  try {
    channel = connect_to_parent(as_zero ? address_of_zero : arguments.address,
                                as_zero ? secret_of_zero : own_secret);
    channel->send({{"hello", RankHello{.rank = control.rank(),
                                       .ranks = control.size(),
                                       .pid = ::getpid(),
                                       .host = host_name(),
                                       .commit = own_commit(),
                                       .suite_hash = arguments.suite_hash}}});
  } catch (const InputError& error) {
    fault = error.what();
  }
  if (control.max(fault.empty() ? 0 : 1) == 0) return channel;
  throw InputError(fault.empty() ? "another rank cannot connect to longca cp" : fault);
}

/// Why these ranks must not work together, the same on all; empty if they may.
std::string refusal(MpiWorld& world, const RankArguments& arguments) {
  RankControl& control = world.control();
  std::string sentence = disagreement(control, own_commit(), arguments.suite_hash);
  if (!sentence.empty()) return sentence;
  try {
    ranks_per_node(world);
    together(control, "loading plug-ins", [&]() -> Status {
      for (const std::string& plugin : arguments.plugins) load_plugin(plugin);
      return {};
    });
  } catch (const Refused& refused) {
    sentence = refused.what();
  } catch (const InputError& error) {
    sentence = error.what();
  }
  return sentence;
}

int serve(MpiWorld& world, const RankArguments& arguments) {
  RankControl& control = world.control();
  const auto channel = meet_parent(world, arguments);
  take_share_of_host(control, world.local_rank());
  StateWatch watch(arguments.plugins.empty() ? StateWatch::Threads::caller
                                             : StateWatch::Threads::caller_and_pool);
  if (const std::string sentence = refusal(world, arguments); !sentence.empty()) {
    if (control.rank() != 0) return kRankRefused;
    channel->send({{"refused", sentence}});
    throw InputError(sentence);
  }
  watch.restore();  // from what plug-ins did as they were loaded
  const auto signal_wait = [&](bool waits) {
    channel->send({{"at", waits ? kWaitsForRanks : "work"}});
  };
  MpiWorld::on_long_wait(signal_wait);
  MpiTeams teams(world, ranks_per_node(world), signal_wait);
  const RankEnd end = run_rank(*channel, teams, watch);
  MpiWorld::on_long_wait({});
  if (end == RankEnd::spoilt) {
    control.barrier();
    std::fflush(nullptr);
    ::_exit(0);  // destructors could wait for a lost device for ever
  }
  return 0;
}

/// Prints on standard error why this process ends, and returns its exit code.
int end_with(int code, const std::exception& error) {
  fmt::print(stderr, "longca-rank: {}\n", printable(error.what()));
  return code;
}

}  // namespace

int run_rank_program(const RankArguments& arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  if (::getppid() == 1) return kRankFailed;  // the launcher is dead
  if (!keep_descendants()) {
    return end_with(kRankFailed, std::system_error(errno, std::generic_category(), "no keeper"));
  }
  set_transport_environment();
  set_python_unavailable(arguments.no_python);
  try {
    MpiWorld world;
    try {
      return serve(world, arguments);
    } catch (const InputError&) {
      throw;
    } catch (const std::exception& error) {
      // Other ranks may be waiting for this one.
      fmt::print(stderr, "longca-rank: rank {}: {}\n", world.control().rank(),
                 printable(error.what()));
      std::fflush(nullptr);
      MpiWorld::abort(kRankFailed);
    }
  } catch (const InputError& error) {
    return end_with(kRankRefused, error);
  } catch (const std::exception& error) {
    return end_with(kRankFailed, error);
  }
}

}  // namespace longca
