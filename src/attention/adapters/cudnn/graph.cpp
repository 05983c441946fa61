#include "attention/adapters/cudnn/graph.h"

#include <cudnn_frontend.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <vector>

#include "attention/adapters/cudnn/library.h"
#include "core/error.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // declared by the frontend, which calls cuDNN through it
}

namespace longca {
namespace {

namespace fe = cudnn_frontend;
using Graph = fe::graph::Graph;
using TensorPtr = std::shared_ptr<fe::graph::Tensor_attributes>;

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

/// cuDNN up to this version pads a backward pass whose keys are no multiple of 128 with lengths
/// that the frontend copies from the host in every call; lengths of our own make it copy nothing.
constexpr int kLastVersionThatPads = 91500;
constexpr std::int64_t kPadMultiple = 128;

cudnnHandle_t cudnn_handle() {
  static const cudnnHandle_t handle = [] {
    fe::cudnn_dlhandle = cudnn_library().handle;
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

/// Whether the lengths of the sequences are given to cuDNN.
bool has_lengths(const CudnnForm& form) {
  return form.packed() ||
         (form.max_tokens_k % kPadMultiple != 0 && cudnn_library().version <= kLastVersionThatPads);
}

/// Describes the tensors of one problem to a graph.
class Describe {
 public:
  Describe(Graph& graph, const Problem& problem, const CudnnForm& form)
      : graph_(graph), problem_(problem), form_(form) {
    cudnn_handle();  // loads the library, which the frontend asks for its version throughout
    graph.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    if (has_lengths(form)) {
      lengths_q = index("lengths_q", kLengthsQ, form.batch, fe::DataType_t::INT32);
      lengths_k = index("lengths_k", kLengthsK, form.batch, fe::DataType_t::INT32);
    }
    if (form.packed()) {
      offsets_q_ = index("offsets_q", kOffsetsQ, form.batch + 1, fe::DataType_t::INT64);
      offsets_k_ = index("offsets_k", kOffsetsK, form.batch + 1, fe::DataType_t::INT64);
      offsets_stats_ = index("offsets_stats", kOffsetsStats, form.batch + 1, fe::DataType_t::INT64);
    }
  }

  TensorPtr like_q(const char* name, Uid uid) { return graph_.tensor(q_attributes(name, uid)); }
  TensorPtr like_k(const char* name, Uid uid) { return graph_.tensor(k_attributes(name, uid)); }
  TensorPtr stats() { return graph_.tensor(stats_attributes()); }

  void set_q(TensorPtr& output, const char* name, Uid uid) { set(output, q_attributes(name, uid)); }
  void set_k(TensorPtr& output, const char* name, Uid uid) { set(output, k_attributes(name, uid)); }
  void set_stats(TensorPtr& output) { set(output, stats_attributes()); }

  /// What both passes are told of the mask.
  template <typename Attributes>
  void set_mask(Attributes& attributes) const {
    attributes.set_attn_scale(problem_.scale());
    if (lengths_q) {
      attributes.set_padding_mask(true).set_seq_len_q(lengths_q).set_seq_len_kv(lengths_k);
    }
    if (form_.left_bound || form_.right_bound) {
      attributes.set_diagonal_alignment(form_.bottom_right ? fe::DiagonalAlignment_t::BOTTOM_RIGHT
                                                           : fe::DiagonalAlignment_t::TOP_LEFT);
    }
    if (form_.left_bound) {
      attributes.set_diagonal_band_left_bound(static_cast<int>(*form_.left_bound));
    }
    if (form_.right_bound) {
      attributes.set_diagonal_band_right_bound(static_cast<int>(*form_.right_bound));
    }
  }

  TensorPtr lengths_q, lengths_k;

 private:
  using Attributes = fe::graph::Tensor_attributes;

  TensorPtr index(const char* name, Uid uid, std::int64_t count, fe::DataType_t type) {
    return graph_.tensor(Attributes()
                             .set_name(name)
                             .set_uid(uid)
                             .set_dim({count, 1, 1, 1})
                             .set_stride({1, 1, 1, 1})
                             .set_data_type(type));
  }

  /// [tokens, heads, dim], packed sequence after sequence: cuDNN's [batch, heads, tokens, dim].
  Attributes tokens_first(const char* name, Uid uid, std::int64_t tokens, std::int64_t heads,
                          const TensorPtr& offsets) const {
    const std::int64_t d = problem_.head_dim;
    Attributes attributes;
    attributes.set_name(name)
        .set_uid(uid)
        .set_dim({form_.batch, heads, tokens, d})
        .set_stride({tokens * heads * d, d, heads * d, 1});
    if (offsets) attributes.set_ragged_offset(offsets);
    return attributes;
  }
  Attributes q_attributes(const char* name, Uid uid) const {
    return tokens_first(name, uid, form_.max_tokens_q, problem_.heads_q, offsets_q_);
  }
  Attributes k_attributes(const char* name, Uid uid) const {
    return tokens_first(name, uid, form_.max_tokens_k, problem_.heads_k, offsets_k_);
  }
  /// The log-sum-exp, [heads, tokens] in packed sequences too.
  Attributes stats_attributes() const {
    const std::int64_t tokens = problem_.tokens_q;
    Attributes attributes;
    attributes.set_name("stats")
        .set_uid(kStats)
        .set_data_type(fe::DataType_t::FLOAT)
        .set_dim({form_.batch, problem_.heads_q, form_.max_tokens_q, 1})
        .set_stride({problem_.heads_q * tokens, tokens, 1, 1});
    if (offsets_stats_) attributes.set_ragged_offset(offsets_stats_);
    return attributes;
  }

  static void set(TensorPtr& output, const Attributes& wanted) {
    output->set_output(true)
        .set_name(wanted.get_name())
        .set_uid(wanted.get_uid())
        .set_dim(wanted.get_dim())
        .set_stride(wanted.get_stride());
    if (wanted.get_data_type() != fe::DataType_t::NOT_SET) {
      output->set_data_type(wanted.get_data_type());
    }
    if (const TensorPtr offsets = Attributes(wanted).get_ragged_offset()) {
      output->set_ragged_offset(offsets);
    }
  }

  Graph& graph_;
  const Problem& problem_;
  const CudnnForm& form_;
  TensorPtr offsets_q_, offsets_k_, offsets_stats_;
};

void describe_forward(Graph& graph, const Problem& problem, const CudnnForm& form) {
  Describe describe(graph, problem, form);
  const TensorPtr q = describe.like_q("q", kQ);
  const TensorPtr k = describe.like_k("k", kK);
  const TensorPtr v = describe.like_k("v", kV);
  fe::graph::SDPA_attributes attributes;
  attributes.set_name("sdpa").set_generate_stats(true);
  describe.set_mask(attributes);
  auto [o, stats] = graph.sdpa(q, k, v, attributes);
  describe.set_q(o, "o", kO);
  describe.set_stats(stats);
}

void describe_backward(Graph& graph, const Problem& problem, const CudnnForm& form) {
  Describe describe(graph, problem, form);
  const TensorPtr q = describe.like_q("q", kQ);
  const TensorPtr k = describe.like_k("k", kK);
  const TensorPtr v = describe.like_k("v", kV);
  const TensorPtr o = describe.like_q("o", kO);
  const TensorPtr dout = describe.like_q("dout", kDout);
  const TensorPtr stats = describe.stats();
  fe::graph::SDPA_backward_attributes attributes;
  attributes.set_name("sdpa_backward");
  describe.set_mask(attributes);
  if (form.packed()) {  // workspace of the tokens there are, not of batch × longest
    attributes.set_max_total_seq_len_q(problem.tokens_q).set_max_total_seq_len_kv(problem.tokens_k);
  }
  auto [dq, dk, dv] = graph.sdpa_backward(q, k, v, o, dout, stats, attributes);
  describe.set_q(dq, "dq", kDq);
  describe.set_k(dk, "dk", kDk);
  describe.set_k(dv, "dv", kDv);
}

/// Up to the point where cuDNN has said whether it has an engine.
fe::error_t prepare(Graph& graph) {
  for (const auto& step : {+[](Graph& g) { return g.validate(); },
                           +[](Graph& g) { return g.build_operation_graph(cudnn_handle()); },
                           +[](Graph& g) { return g.create_execution_plans({fe::HeurMode_t::A}); },
                           +[](Graph& g) { return g.check_support(); }}) {
    const fe::error_t error = step(graph);
    if (error.is_bad()) return error;
  }
  return {fe::error_code_t::OK, ""};
}

Buffer on_device(const void* host, std::size_t bytes) {
  Device& device = Device::get(DeviceKind::cuda);
  Buffer buffer(device.memory(), static_cast<std::int64_t>(bytes));
  device.copy(buffer.data(), host, static_cast<std::int64_t>(bytes));
  return buffer;
}

template <typename T>
Buffer on_device(const std::vector<T>& values) {
  return on_device(values.data(), values.size() * sizeof(T));
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
  Buffer workspace;
  Buffer lengths_q, lengths_k, offsets_q, offsets_k, offsets_stats;

  void build(Graph& graph) {
    require(prepare(graph));
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
    } else if (has_lengths(form)) {
      lengths_q = on_device(std::vector{static_cast<std::int32_t>(problem.tokens_q)});
      lengths_k = on_device(std::vector{static_cast<std::int32_t>(problem.tokens_k)});
    }
  }

  void run(Graph& graph, std::unordered_map<std::int64_t, void*> pointers, Stream stream) {
    for (const auto& [uid, buffer] :
         {std::pair{kLengthsQ, &lengths_q}, std::pair{kLengthsK, &lengths_k},
          std::pair{kOffsetsQ, &offsets_q}, std::pair{kOffsetsK, &offsets_k},
          std::pair{kOffsetsStats, &offsets_stats}}) {
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
  const auto refused = [](const fe::error_t& error) {
    return Support::unsupported(
        fmt::format("cuDNN {}: {}", cudnn_version_text(cudnn_library().version), error.err_msg));
  };
  Graph forward;
  describe_forward(forward, problem, form);
  if (const auto error = prepare(forward); error.is_bad()) return refused(error);
  if (!problem.backward) return {};
  Graph backward;
  describe_backward(backward, problem, form);
  if (const auto error = prepare(backward); error.is_bad()) return refused(error);
  return {};
} catch (const std::exception& error) {
  return Support::unavailable(fmt::format("cuDNN cannot be used: {}", error.what()));
}

CudnnGraphs::CudnnGraphs(const Problem& problem, const CudnnForm& form)
    : impl_(std::make_unique<Impl>()) {
  describe_forward(impl_->forward, problem, form);
  impl_->build(impl_->forward);
  std::int64_t bytes = impl_->forward.get_workspace_size();
  if (problem.backward) {
    describe_backward(impl_->backward, problem, form);
    impl_->build(impl_->backward);
    bytes = std::max<std::int64_t>(bytes, impl_->backward.get_workspace_size());
  }
  impl_->workspace = Buffer(Device::get(DeviceKind::cuda).memory(), bytes);
  impl_->upload(problem, form);
}

CudnnGraphs::~CudnnGraphs() = default;

std::int64_t CudnnGraphs::workspace_bytes() const {
  std::int64_t bytes = impl_->workspace.bytes();
  for (const Buffer* buffer : {&impl_->lengths_q, &impl_->lengths_k, &impl_->offsets_q,
                               &impl_->offsets_k, &impl_->offsets_stats}) {
    bytes += buffer->bytes();
  }
  return bytes;
}

void CudnnGraphs::forward(const ForwardArgs& args) {
  for (const auto& [view, name] :
       {std::pair{args.q, "q"}, std::pair{args.k, "k"}, std::pair{args.v, "v"}}) {
    check_layout(view, name);
  }
  check_layout(args.o, "o");
  LONGCA_CHECK(args.lse.head_stride == args.lse.tokens, "lse is not contiguous [heads, tokens]");
  impl_->run(impl_->forward,
             {{kQ, writable(args.q.data)},
              {kK, writable(args.k.data)},
              {kV, writable(args.v.data)},
              {kO, args.o.data},
              {kStats, args.lse.data}},
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
             {{kQ, writable(args.q.data)},
              {kK, writable(args.k.data)},
              {kV, writable(args.v.data)},
              {kO, writable(args.o.data)},
              {kDout, writable(args.dout.data)},
              {kStats, writable(args.lse.data)},
              {kDq, args.dq.data},
              {kDk, args.dk.data},
              {kDv, args.dv.data}},
             args.stream);
}

}  // namespace longca
