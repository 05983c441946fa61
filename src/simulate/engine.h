#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "parallel/executor/lanes.h"
#include "simulate/cluster.h"
#include "simulate/program.h"

namespace longca::simulate {

/// Stands for the start of a rank's pass where an op's number is expected.
inline constexpr int kPassStart = -2;

/// An op of a rank, kEarlyRows or kPassStart.
struct OpPlace {
  int rank = 0;
  int op = kPassStart;
};

/// When an op ran, in seconds, and what it had waited for last.
struct OpSpan {
  double begin = 0;
  double end = 0;
  int cause = kPassStart;  ///< the op of this rank, or kEarlyRows, whose end let it begin
  int last = -1;           ///< of an exchange: the message whose arrival ended it; −1: none
};

/// A pass of all ranks in time.
struct SimulatedPass {
  std::vector<std::vector<OpSpan>> spans;  ///< by rank and op
  std::vector<OpSpan> early;               ///< by rank: the row work of later steps
  std::vector<double> starts;              ///< by rank: when its pass begins
  std::vector<std::int64_t> bytes_sent;    ///< by rank, as they arrived
  std::vector<double> arrivals;            ///< by message; empty where exchanges are skipped
  std::vector<double> ends;                ///< by rank

  double end() const;
  int slowest() const;                      ///< the rank that ends last
  const OpSpan& span(OpPlace place) const;  ///< not of kPassStart
};

/// Whether messages travel, or exchanges take no time.
enum class Exchanges : std::uint8_t { run, skip };

/// Runs the pass: both lanes of each rank in their order, an exchange as soon as its receivers have
/// granted it, a rank's messages one after the other by its copy engine and, beside these, one
/// after the other by its NIC; all that are on their way share their links. Kernels are slower
/// meanwhile. Each rank begins at its time in `starts`, at 0 without any: the second pass of a step
/// where its first one has ended. The same arguments give the same bits. Throws InputError if the
/// cluster has fewer GPUs than there are ranks, InternalError that names the ranks that wait for
/// each other in a deadlock.
SimulatedPass run(const Program& program, const Cluster& cluster, Exchanges exchanges,
                  std::span<const double> starts = {});

/// The times of one rank's ops, as a trace takes them.
std::vector<OpTime> trace_times(const SimulatedPass& pass, int rank);

}  // namespace longca::simulate
