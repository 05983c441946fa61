#pragma once

#include <cstdint>

#include "attention/adapters/cudnn/form.h"
#include "attention/api/problem.h"

namespace cudnn_frontend::graph {
class Graph;
}

namespace longca::cudnn {

/// Tensor UIDs that connect a graph with the pointers of a call.
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
  kOffsetsStats,
  kOffsetsO,  ///< only where v has a dimension of its own, as kOffsetsV
  kOffsetsV
};

/// Whether v, o and their gradients have ragged offsets of their own: rows of another size.
bool has_value_offsets(const Problem& problem, const CudnnForm& form);
/// Whether the graphs of this form have sequence lengths as inputs.
bool takes_lengths(const CudnnForm& form);

/// Define one pass in a graph of the frontend. cuDNN must be loaded, because the frontend queries
/// its version.
void describe_forward(cudnn_frontend::graph::Graph& graph, const Problem& problem,
                      const CudnnForm& form);
void describe_backward(cudnn_frontend::graph::Graph& graph, const Problem& problem,
                       const CudnnForm& form);

}  // namespace longca::cudnn
