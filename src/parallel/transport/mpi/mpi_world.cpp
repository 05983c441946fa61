#include "parallel/transport/mpi/mpi_world.h"

#include <cstdlib>
#include <utility>

#include "core/error.h"
#include "parallel/transport/mpi/mpi_call.h"
#include "parallel/transport/mpi/mpi_communicator.h"
#include "parallel/transport/mpi/mpi_control.h"

namespace longca {
namespace {

/// MPI from MPI_Init_thread to MPI_Finalize.
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

/// An owned MPI communicator whose errors are returned.
class Comm {
 public:
  explicit Comm(MPI_Comm made) : comm(made) {
    if (comm != MPI_COMM_NULL) LONGCA_MPI(MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN));
  }
  ~Comm() {
    if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
  }
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  MPI_Comm comm;
};

MPI_Comm copy_of(MPI_Comm comm) {
  MPI_Comm made = MPI_COMM_NULL;
  LONGCA_MPI(MPI_Comm_dup(comm, &made));
  return made;
}

MPI_Comm on_this_host(MPI_Comm comm) {
  MPI_Comm made = MPI_COMM_NULL;
  LONGCA_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &made));
  return made;
}

}  // namespace

struct MpiWorld::Impl {
  std::shared_ptr<Library> library;
  Comm comm;
  MpiControl control;
  int local_rank = 0;
  int local_size = 1;

  /// Takes over `own`.
  Impl(std::shared_ptr<Library> mpi, MPI_Comm own)
      : library(std::move(mpi)), comm(own), control(comm.comm) {
    const Comm host(on_this_host(comm.comm));
    LONGCA_MPI(MPI_Comm_rank(host.comm, &local_rank));
    LONGCA_MPI(MPI_Comm_size(host.comm, &local_size));
  }
};

MpiWorld::MpiWorld() {
  auto library = std::make_shared<Library>();
  impl_ = std::make_unique<Impl>(std::move(library), copy_of(MPI_COMM_WORLD));
}

MpiWorld::MpiWorld(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

MpiWorld::~MpiWorld() = default;

std::unique_ptr<MpiWorld> MpiWorld::first(int ranks) {
  const int rank = impl_->control.rank();
  MPI_Comm made = MPI_COMM_NULL;
  LONGCA_MPI(MPI_Comm_split(impl_->comm.comm, rank < ranks ? 0 : MPI_UNDEFINED, rank, &made));
  if (made == MPI_COMM_NULL) return nullptr;
  return std::unique_ptr<MpiWorld>(new MpiWorld(std::make_unique<Impl>(impl_->library, made)));
}

RankControl& MpiWorld::control() {
  return impl_->control;
}

int MpiWorld::local_rank() const {
  return impl_->local_rank;
}

int MpiWorld::local_size() const {
  return impl_->local_size;
}

std::unique_ptr<Communicator> MpiWorld::make_communicator() {
  return std::make_unique<MpiCommunicator>(impl_->comm.comm);
}

void MpiWorld::abort(int code) {
  MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

void MpiWorld::on_long_wait(std::function<void(bool)> listener) {
  set_long_wait_listener(std::move(listener));
}

}  // namespace longca
