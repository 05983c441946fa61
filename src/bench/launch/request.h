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
  int max_cpu = 1;         ///< maximum ranks of a cell on CPUs; more than cores share them
  int max_cuda = 0;        ///< and on GPUs
  std::string limit_cpu;   ///< why: "this launch has 8 processes"
  std::string limit_cuda;  ///< likewise
  bool several_hosts = false;
};

/// How many ranks this host's CPUs take: "the 2 cores of this host take at most 64; …".
std::string host_limit(int cores);

/// On this host, on those of the hostfile, or by srun. Throws InputError for a bad hostfile.
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
