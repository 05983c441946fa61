#pragma once

#include <mpi.h>

#include <functional>
#include <stdexcept>

namespace longca {

/// A call of MPI that returned an error: "rank 2: MPI_Start: MPI_ERR_REQUEST: invalid request".
class MpiError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws MpiError unless `code` is MPI_SUCCESS. `call` is the text of the call.
void check_mpi(int code, const char* call);

/// How a rank waits: `eager` asks without a pause, and only lets other threads of the machine go
/// first, as for messages of a timed pass; `patient` sleeps more and more, up to 1 ms, so that a
/// rank that waits for another's checking leaves it the cores.
enum class Wait { eager, patient };
void wait_until(Wait wait, const std::function<bool()>& done);
/// Hears when a wait has lasted half a second, and when it ends after all.
void set_long_wait_listener(std::function<void(bool waits)> listener);

/// Waits for the one request.
void wait_for(MPI_Request& request, Wait wait);

}  // namespace longca

/// Every call of MPI goes through this: LONGCA_MPI(MPI_Start(&request)).
#define LONGCA_MPI(call) ::longca::check_mpi((call), #call)
