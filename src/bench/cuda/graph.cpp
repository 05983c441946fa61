#include "bench/cuda/graph.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <type_traits>

#include "bench/device_clock.h"
#include "core/cuda/error.h"

namespace longca {
namespace {

struct DestroyGraph {
  void operator()(cudaGraph_t graph) const noexcept { cudaGraphDestroy(graph); }
};
using Graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, DestroyGraph>;

/// The graph, or why there is none.
Graph record(const std::function<void()>& call, cudaStream_t stream, std::string& why_not) {
  LONGCA_CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  try {
    call();
  } catch (const std::exception& error) {
    why_not = error.what();
  }
  cudaGraph_t graph = nullptr;
  const cudaError_t ended = cudaStreamEndCapture(stream, &graph);
  cudaGetLastError();  // a refused call leaves its error behind
  if (why_not.empty() && ended != cudaSuccess) {
    why_not = fmt::format("{} ({})", cudaGetErrorString(ended), cudaGetErrorName(ended));
  }
  return Graph(graph);
}

}  // namespace

std::function<void()> capture_graph(const std::function<void()>& call, cudaStream_t stream) {
  std::string why_not;
  const Graph graph = record(call, stream, why_not);
  if (why_not.empty()) {
    std::size_t nodes = 0;
    LONGCA_CUDA(cudaGraphGetNodes(graph.get(), nullptr, &nodes));
    if (nodes == 0) why_not = "it queues its work on a stream of its own";
  }
  if (!why_not.empty()) throw GraphRefused("cannot be captured in a CUDA graph: " + why_not);
  cudaGraphExec_t made = nullptr;
  LONGCA_CUDA(cudaGraphInstantiate(&made, graph.get(), 0));
  const std::shared_ptr<std::remove_pointer_t<cudaGraphExec_t>> replayed(
      made, [](cudaGraphExec_t exec) { cudaGraphExecDestroy(exec); });
  return [replayed, stream] { LONGCA_CUDA(cudaGraphLaunch(replayed.get(), stream)); };
}

}  // namespace longca
