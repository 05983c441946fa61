#pragma once

#include <functional>
#include <memory>

#include "parallel/transport/communicator.h"

namespace longca {

/// This process among those that mpirun or srun started. Outside of this folder MPI is used through
/// this class alone: nothing else includes mpi.h.
class MpiWorld {
 public:
  /// Initialises MPI; at most once per process. MPI is finalised when this object and all made from
  /// it are destroyed. Throws InputError if MPI cannot start or lacks MPI_THREAD_FUNNELED.
  MpiWorld();
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  /// Returns a world of the first `ranks` ranks; null on the other ranks. Collective.
  std::unique_ptr<MpiWorld> first(int ranks);

  RankControl& control();
  /// Index among the ranks of this host, which chooses the GPU.
  int local_rank() const;
  int local_size() const;
  /// Makes the transport of host memories, over an MPI communicator of its own. Collective, as is
  /// destroying it.
  std::unique_ptr<Communicator> make_communicator();
  /// `listener` is called on the waiting thread when this rank has waited kLongWait for others,
  /// and again when it continues: shows which of two stalled ranks waits for the other.
  static void on_long_wait(std::function<void(bool waits)> listener);
  /// Ends all processes of the launch with this exit code.
  [[noreturn]] static void abort(int code);

 private:
  struct Impl;
  explicit MpiWorld(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace longca
