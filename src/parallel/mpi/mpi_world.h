#pragma once

#include <memory>

#include "parallel/comm/communicator.h"

namespace longca {

/// This process's place among those that mpirun or srun started. Made once, first; ends MPI when
/// destroyed. Everything over MPI in this program is here, so that nothing else needs its headers.
class MpiWorld {
 public:
  /// Throws InputError if MPI cannot start, or gives less than one thread that may call it while
  /// others run.
  MpiWorld();
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  RankControl& control();
  /// Place among the ranks of this host, for the choice of a GPU.
  int local_rank() const;
  int local_size() const;
  /// Messages of a case between host memories. Its own communicator, apart from the control's.
  std::unique_ptr<Communicator> make_communicator();
  /// Ends all ranks at once with this exit code.
  [[noreturn]] void abort(int code);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longca
