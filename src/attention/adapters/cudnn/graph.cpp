#include "attention/adapters/cudnn/graph.h"

#include <cudnn_frontend.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "attention/adapters/cudnn/describe.h"
#include "attention/adapters/cudnn/library.h"
#include "core/cuda/upload.h"
#include "core/error.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // declared by the frontend, which calls cuDNN through it
}

namespace longca {
namespace {

namespace fe = cudnn_frontend;
using Graph = fe::graph::Graph;

cudnnHandle_t cudnn_handle() {
  static const cudnnHandle_t handle = [] {
    fe::cudnn_dlhandle = cudnn_library().file.handle();
    cudnnHandle_t made = nullptr;
    const cudnnStatus_t status = fe::detail::create_handle(&made);
    if (status != CUDNN_STATUS_SUCCESS) {
      throw std::runtime_error(
          fmt::format("cudnnCreate failed: {}", fe::detail::get_error_string(status)));
    }
    return made;
  }();
  return handle;
}

void require(const fe::error_t& error) {
  if (error.is_bad()) throw std::runtime_error("cuDNN: " + error.err_msg);
}

using DescribePass = void (*)(Graph&, const Problem&, const CudnnForm&);

/// Builds the graph up to cuDNN's check for an engine.
fe::error_t prepare(Graph& graph, DescribePass describe, const Problem& problem,
                    const CudnnForm& form) {
  const cudnnHandle_t handle = cudnn_handle();
  describe(graph, problem, form);
  if (auto error = graph.validate(); error.is_bad()) return error;
  if (auto error = graph.build_operation_graph(handle); error.is_bad()) return error;
  if (auto error = graph.create_execution_plans({fe::HeurMode_t::A}); error.is_bad()) return error;
  return graph.check_support();
}

/// Whether cuDNN supports one pass.
Support check_pass(DescribePass describe, const Problem& problem, const CudnnForm& form) {
  Graph graph;
  const fe::error_t error = prepare(graph, describe, problem, form);
  if (error.is_good()) return {};
  return Support::unsupported(
      fmt::format("cuDNN {}: {}", cudnn_version_text(cudnn_library().version), error.err_msg));
}

void check_layout(const ConstTensorView& view, const char* name) {
  LONGCA_CHECK(view.head_stride == view.dim && view.token_stride == view.heads * view.dim,
               "{} is not contiguous [tokens, heads, dim]", name);
}

void* writable(const void* data) {
  return const_cast<void*>(data);  // the frontend takes inputs and outputs in one map
}

}  // namespace

struct CudnnGraphs::Impl {
  Graph forward, backward;
  PlanScratch workspace;
  Buffer lengths_q, lengths_k, offsets_q, offsets_k, offsets_stats, offsets_o, offsets_v;

  void build(Graph& graph, DescribePass describe, const Problem& problem, const CudnnForm& form) {
    require(prepare(graph, describe, problem, form));
    require(graph.build_plans());
  }

  void upload(const Problem& problem, const CudnnForm& form) {
    if (form.packed()) {
      lengths_q = on_device(sequence_lengths(form));
      lengths_k = on_device(sequence_lengths(form));
      const std::int64_t d = problem.head_dim;
      offsets_q = on_device(ragged_offsets(form, problem.heads_q * d));
      offsets_k = on_device(ragged_offsets(form, problem.heads_k * d));
      offsets_stats = on_device(ragged_offsets(form, 1));
      if (cudnn::has_value_offsets(problem, form)) {
        offsets_o = on_device(ragged_offsets(form, problem.heads_q * problem.value_dim()));
        offsets_v = on_device(ragged_offsets(form, problem.heads_k * problem.value_dim()));
      }
    } else if (cudnn::takes_lengths(form)) {
      lengths_q = on_device(std::vector{static_cast<std::int32_t>(problem.tokens_q)});
      lengths_k = on_device(std::vector{static_cast<std::int32_t>(problem.tokens_k)});
    }
  }

  void run(Graph& graph, std::unordered_map<std::int64_t, void*> pointers, Stream stream) {
    for (const auto& [uid, buffer] :
         {std::pair{cudnn::kLengthsQ, &lengths_q}, std::pair{cudnn::kLengthsK, &lengths_k},
          std::pair{cudnn::kOffsetsQ, &offsets_q}, std::pair{cudnn::kOffsetsK, &offsets_k},
          std::pair{cudnn::kOffsetsStats, &offsets_stats}, std::pair{cudnn::kOffsetsO, &offsets_o},
          std::pair{cudnn::kOffsetsV, &offsets_v}}) {
      if (buffer->data() != nullptr) pointers[uid] = buffer->data();
    }
    const cudnnHandle_t handle = cudnn_handle();
    if (fe::detail::set_stream(handle, static_cast<cudaStream_t>(stream)) != CUDNN_STATUS_SUCCESS) {
      throw std::runtime_error("cudnnSetStream failed");
    }
    require(graph.execute(handle, pointers, workspace.data()));
  }
};

Support CudnnGraphs::check(const Problem& problem, const CudnnForm& form) try {
  const Support forward = check_pass(cudnn::describe_forward, problem, form);
  if (!forward.ok() || !problem.backward) return forward;
  return check_pass(cudnn::describe_backward, problem, form);
} catch (const std::exception& error) {
  return Support::unavailable(fmt::format("cuDNN cannot be used: {}", error.what()));
}

CudnnGraphs::CudnnGraphs(const Problem& problem, const CudnnForm& form)
    : impl_(std::make_unique<Impl>()) {
  impl_->build(impl_->forward, cudnn::describe_forward, problem, form);
  std::int64_t bytes = impl_->forward.get_workspace_size();
  if (problem.backward) {
    impl_->build(impl_->backward, cudnn::describe_backward, problem, form);
    bytes = std::max<std::int64_t>(bytes, impl_->backward.get_workspace_size());
  }
  impl_->workspace = PlanScratch(Device::get(DeviceKind::cuda).memory(), bytes);
  impl_->upload(problem, form);
}

CudnnGraphs::~CudnnGraphs() = default;

std::int64_t CudnnGraphs::workspace_bytes() const {
  std::int64_t bytes = impl_->workspace.own_bytes();
  for (const Buffer* buffer :
       {&impl_->lengths_q, &impl_->lengths_k, &impl_->offsets_q, &impl_->offsets_k,
        &impl_->offsets_stats, &impl_->offsets_o, &impl_->offsets_v}) {
    bytes += buffer->bytes();
  }
  return bytes;
}

PlanScratch& CudnnGraphs::scratch() const {
  return impl_->workspace;
}

void CudnnGraphs::forward(const ForwardArgs& args) {
  for (const auto& [view, name] :
       {std::pair{args.q, "q"}, std::pair{args.k, "k"}, std::pair{args.v, "v"}}) {
    check_layout(view, name);
  }
  check_layout(args.o, "o");
  LONGCA_CHECK(args.lse.head_stride == args.lse.tokens, "lse is not contiguous [heads, tokens]");
  impl_->run(impl_->forward,
             {{cudnn::kQ, writable(args.q.data)},
              {cudnn::kK, writable(args.k.data)},
              {cudnn::kV, writable(args.v.data)},
              {cudnn::kO, args.o.data},
              {cudnn::kStats, args.lse.data}},
             args.stream);
}

void CudnnGraphs::backward(const BackwardArgs& args) {
  for (const auto& [view, name] :
       {std::pair{args.q, "q"}, std::pair{args.k, "k"}, std::pair{args.v, "v"},
        std::pair{args.o, "o"}, std::pair{args.dout, "dout"}}) {
    check_layout(view, name);
  }
  for (const auto& [view, name] :
       {std::pair{args.dq, "dq"}, std::pair{args.dk, "dk"}, std::pair{args.dv, "dv"}}) {
    check_layout(view, name);
  }
  LONGCA_CHECK(args.lse.head_stride == args.lse.tokens, "lse is not contiguous [heads, tokens]");
  impl_->run(impl_->backward,
             {{cudnn::kQ, writable(args.q.data)},
              {cudnn::kK, writable(args.k.data)},
              {cudnn::kV, writable(args.v.data)},
              {cudnn::kO, writable(args.o.data)},
              {cudnn::kDout, writable(args.dout.data)},
              {cudnn::kStats, writable(args.lse.data)},
              {cudnn::kDq, args.dq.data},
              {cudnn::kDk, args.dk.data},
              {cudnn::kDv, args.dv.data}},
             args.stream);
}

}  // namespace longca
