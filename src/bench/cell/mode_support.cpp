#include "bench/cell/mode_support.h"

namespace longca {

Support check_mode(const Case& c) {
  if (c.mode != "graph") return {};
  if (c.scheme) {
    return Support::unsupported(
        "mode graph replays the work of one GPU, not of ranks that wait for each other");
  }
  if (c.device == "cpu") {
    return Support::unsupported("mode graph replays a CUDA graph, which the CPU does not have");
  }
  return {};
}

}  // namespace longca
