#pragma once

#include <span>
#include <string>

#include "bench/launch/launcher.h"
#include "bench/launch/rank_machine.h"
#include "bench/suite/cases.h"
#include "bench/suite/suite.h"

namespace longca {

/// Where ranks can be started, and how many.
struct RankPlaces {
  FoundRanks ranks;
  /// Maximum ranks of a cell on CPUs and on GPUs; 0: none (more ranks than cores share them).
  int max_cpu = 0;
  int max_cuda = 0;
  std::string limit;  ///< why: "this launch has 8 processes"
  bool several_hosts = false;
};

/// On this host, or on those of the hostfile. Throws InputError for a bad hostfile.
RankPlaces places_of(const RankStart& start);
RankPlaces places_of(const MpiLaunch& launch);

/// Throws InputError if no cell can run, whatever is installed: all have too many ranks, a
/// transport of the other device, or a factor that does not divide their ranks. If only some cells
/// cannot run, their records say so.
void refuse_impossible(std::span<const Case> cases, const RankPlaces& places);

/// Has Python host the ranks if a plug-in or a case's kernel is in Python. Where Python does not
/// start, the ranks get the reason why those kernels are `unavailable`.
void host_ranks(RankStart& start, std::span<const Case> cases);

/// A hash of what is to be run, by which separately started ranks check that they agree.
std::string hash_of_suite(const Suite& suite, std::span<const Case> cases);

}  // namespace longca
