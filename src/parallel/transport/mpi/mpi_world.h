#pragma once

#include <functional>
#include <memory>

#include "parallel/transport/communicator.h"

namespace longca {

/// This process's place among those that mpirun or srun started. Everything over MPI in this
/// program is here, so that nothing else needs its headers.
class MpiWorld {
 public:
  /// Starts MPI, for all processes of the launch: once, first. MPI ends when this object and all
  /// that were made from it are gone. Throws InputError if MPI cannot start, or does not let
  /// threads run beside the one that calls it.
  MpiWorld();
  ~MpiWorld();
  MpiWorld(const MpiWorld&) = delete;
  MpiWorld& operator=(const MpiWorld&) = delete;

  /// The first `ranks` of this world as one of their own; null on the others. Collective.
  std::unique_ptr<MpiWorld> first(int ranks);

  RankControl& control();
  /// Place among the ranks of this host, for the choice of a GPU.
  int local_rank() const;
  int local_size() const;
  /// Messages of a case between host memories. Its own MPI communicator, apart from the control's.
  /// Collective, as is its end.
  std::unique_ptr<Communicator> make_communicator();
  /// Hears, on the thread that waits, when this rank has waited half a second for others, and when
  /// it goes on: of two ranks that stand still, which one the other waits for.
  static void on_long_wait(std::function<void(bool waits)> listener);
  /// Ends all processes of the launch at once with this exit code.
  [[noreturn]] static void abort(int code);

 private:
  struct Impl;
  explicit MpiWorld(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace longca
