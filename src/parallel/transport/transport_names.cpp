#include <fmt/ranges.h>

#include <array>

#include "core/error.h"
#include "core/nearest.h"
#include "parallel/transport/transports.h"

namespace longca {

std::span<const std::string> cuda_transport_names() {
  static const std::array<std::string, 2> names = {"nccl", "peer"};
  return names;
}

void check_cuda_transport(const std::string& transport) {
  for (const std::string& name : cuda_transport_names()) {
    if (name == transport) return;
  }
  throw_input_error("there is no transport '{}' between GPUs{}: {}", transport,
                    suggestion(transport, cuda_transport_names()),
                    fmt::join(cuda_transport_names(), " or "));
}

}  // namespace longca
