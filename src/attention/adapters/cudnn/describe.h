#pragma once

#include <cstdint>

#include "attention/adapters/cudnn/form.h"
#include "attention/api/problem.h"

namespace cudnn_frontend::graph {
class Graph;
}

namespace longca::cudnn {

/// Names of tensors between a graph and the pointers of a call.
enum Uid : std::int64_t {
  kQ = 1,
  kK,
  kV,
  kO,
  kStats,
  kDout,
  kDq,
  kDk,
  kDv,
  kLengthsQ,
  kLengthsK,
  kOffsetsQ,
  kOffsetsK,
  kOffsetsStats
};

/// Whether the graphs of this form take the lengths of its sequences.
bool takes_lengths(const CudnnForm& form);

/// Say to a graph of the frontend what one pass computes from which tensors. cuDNN must be loaded:
/// the frontend asks for its version.
void describe_forward(cudnn_frontend::graph::Graph& graph, const Problem& problem,
                      const CudnnForm& form);
void describe_backward(cudnn_frontend::graph::Graph& graph, const Problem& problem,
                       const CudnnForm& form);

}  // namespace longca::cudnn
