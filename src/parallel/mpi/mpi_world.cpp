#include "parallel/mpi/mpi_world.h"

#include <cstdlib>

#include "core/error.h"
#include "parallel/mpi/mpi_call.h"
#include "parallel/mpi/mpi_communicator.h"
#include "parallel/mpi/mpi_control.h"

namespace longca {
namespace {

/// MPI itself, from its first call to its last.
class Library {
 public:
  Library() {
    int given = MPI_THREAD_SINGLE;
    if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given) != MPI_SUCCESS) {
      throw InputError("MPI does not start (MPI_Init_thread failed)");
    }
    if (given < MPI_THREAD_FUNNELED) {
      MPI_Finalize();
      throw InputError(
          "this MPI allows a process no thread beside the one that calls it (MPI_THREAD_SINGLE)");
    }
    LONGCA_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  }
  ~Library() { MPI_Finalize(); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
};

class Comm {
 public:
  Comm() = default;
  ~Comm() {
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  }
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  MPI_Comm comm = MPI_COMM_NULL;
};

}  // namespace

struct MpiWorld::Impl {
  Library library;
  Comm control_comm;
  std::unique_ptr<MpiControl> control;
  int local_rank = 0;
  int local_size = 1;
};

MpiWorld::MpiWorld() : impl_(std::make_unique<Impl>()) {
  LONGCA_MPI(MPI_Comm_dup(MPI_COMM_WORLD, &impl_->control_comm.comm));
  LONGCA_MPI(MPI_Comm_set_errhandler(impl_->control_comm.comm, MPI_ERRORS_RETURN));
  impl_->control = std::make_unique<MpiControl>(impl_->control_comm.comm);
  Comm host;
  LONGCA_MPI(
      MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host.comm));
  LONGCA_MPI(MPI_Comm_rank(host.comm, &impl_->local_rank));
  LONGCA_MPI(MPI_Comm_size(host.comm, &impl_->local_size));
}

MpiWorld::~MpiWorld() = default;

RankControl& MpiWorld::control() {
  return *impl_->control;
}

int MpiWorld::local_rank() const {
  return impl_->local_rank;
}

int MpiWorld::local_size() const {
  return impl_->local_size;
}

std::unique_ptr<Communicator> MpiWorld::make_communicator() {
  return std::make_unique<MpiCommunicator>(MPI_COMM_WORLD);
}

void MpiWorld::abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

}  // namespace longca
