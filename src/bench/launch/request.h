#pragma once

#include <span>
#include <string>

#include "bench/cases.h"
#include "bench/launch/mpi_launch.h"
#include "bench/launch/rank_command.h"
#include "bench/suite.h"

namespace longca {

/// Where ranks can be started, and how many.
struct RankPlaces {
  FoundRanks ranks;
  /// The most ranks of a cell on CPUs and on GPUs; 0: no limit (more than cores share them).
  int most_cpu = 0;
  int most_cuda = 0;
  std::string limit;  ///< what sets it: "this launch has 8 processes"
  bool several_hosts = false;
};

/// On this host, or on those of the hostfile. Throws InputError for a hostfile that is none.
RankPlaces places_of(const RankStart& start);
RankPlaces places_of(const MpiLaunch& launch);

/// Throws InputError if no cell at all can be run, whatever is installed: all have more ranks than
/// places, a transport of the other device, or a factor that does not divide their ranks. Where it
/// is some cells, each says so itself.
void refuse_impossible(std::span<const Case> cases, const RankPlaces& places);

/// Has Python host the ranks if a plug-in or a case's kernel is in Python; where it does not start,
/// the ranks are told why those kernels are `unavailable`.
void host_ranks(RankStart& start, std::span<const Case> cases);

/// A hash of what is to be run, by which ranks that were started apart know that they agree.
std::string hash_of_suite(const Suite& suite, std::span<const Case> cases);

}  // namespace longca
