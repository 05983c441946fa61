#pragma once

#include <mpi.h>

#include <functional>
#include <stdexcept>

namespace longca {

/// A failed MPI call: "rank 2: MPI_Start: MPI_ERR_REQUEST: invalid request".
class MpiError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Throws MpiError unless `code` is MPI_SUCCESS. `call` is the text of the call.
void check_mpi(int code, const char* call);

/// How a rank waits: `eager` polls and only yields its core, for messages of a timed pass;
/// `patient` backs off to sleeps of 1 ms, which leaves the cores to a rank that is still verifying.
enum class Wait { eager, patient };
void wait_until(Wait wait, const std::function<bool()>& done);
/// `listener(true)` is called once a wait has lasted kLongWait, `listener(false)` when it ends.
void set_long_wait_listener(std::function<void(bool waits)> listener);

/// Blocks until the request is complete.
void wait_for(MPI_Request& request, Wait wait);

}  // namespace longca

/// Wraps every MPI call: LONGCA_MPI(MPI_Start(&request)).
#define LONGCA_MPI(call) ::longca::check_mpi((call), #call)
