#pragma once

#include <memory>
#include <string>
#include <vector>

#include "parallel/transport/communicator.h"

namespace longca::testing {

struct NamedCommunicator {
  std::string name;
  std::unique_ptr<Communicator> communicator;
};

/// Prints on rank 0, for ring, all-gather and all-to-all of strided rows, what each communicator
/// moves: GB/s that leave each GPU, by the slowest one.
void print_bandwidths(std::vector<NamedCommunicator>& communicators, RankControl& control);

/// Prints what CudaStepMath moves: TB/s of bytes read and written, tensors of 128 MiB in bf16.
void print_step_math();

}  // namespace longca::testing
