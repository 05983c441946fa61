#include "attention/adapters/cudnn/describe.h"

#include <cudnn_frontend.h>

#include <memory>

#include "attention/adapters/cudnn/library.h"

namespace longca::cudnn {
namespace {

namespace fe = cudnn_frontend;
using Graph = fe::graph::Graph;
using TensorPtr = std::shared_ptr<fe::graph::Tensor_attributes>;

/// Up to this version, the frontend pads a backward pass whose number of keys is not a multiple of
/// 128 and copies lengths from the host in every call, unless the graph has lengths of its own.
constexpr int kLastVersionThatPads = 91500;
constexpr std::int64_t kPadMultiple = 128;

/// Adds the tensors of one problem to a graph.
class Describe {
 public:
  Describe(Graph& graph, const Problem& problem, const CudnnForm& form)
      : graph_(graph), problem_(problem), form_(form) {
    graph
        .set_io_data_type(problem.dtype == DType::float16 ? fe::DataType_t::HALF
                                                          : fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    if (takes_lengths(form)) {
      lengths_q = index("lengths_q", kLengthsQ, form.batch, fe::DataType_t::INT32);
      lengths_k = index("lengths_k", kLengthsK, form.batch, fe::DataType_t::INT32);
    }
    if (form.packed()) {
      offsets_q_ = index("offsets_q", kOffsetsQ, form.batch + 1, fe::DataType_t::INT64);
      offsets_k_ = index("offsets_k", kOffsetsK, form.batch + 1, fe::DataType_t::INT64);
      offsets_stats_ = index("offsets_stats", kOffsetsStats, form.batch + 1, fe::DataType_t::INT64);
      offsets_o_ = offsets_q_;
      offsets_v_ = offsets_k_;
    }
    if (has_value_offsets(problem, form)) {
      offsets_o_ = index("offsets_o", kOffsetsO, form.batch + 1, fe::DataType_t::INT64);
      offsets_v_ = index("offsets_v", kOffsetsV, form.batch + 1, fe::DataType_t::INT64);
    }
  }

  TensorPtr like_q(const char* name, Uid uid) { return graph_.tensor(q_attributes(name, uid)); }
  TensorPtr like_k(const char* name, Uid uid) { return graph_.tensor(k_attributes(name, uid)); }
  TensorPtr like_o(const char* name, Uid uid) { return graph_.tensor(o_attributes(name, uid)); }
  TensorPtr like_v(const char* name, Uid uid) { return graph_.tensor(v_attributes(name, uid)); }
  TensorPtr stats() { return graph_.tensor(stats_attributes()); }

  void set_q(TensorPtr& output, const char* name, Uid uid) { set(output, q_attributes(name, uid)); }
  void set_k(TensorPtr& output, const char* name, Uid uid) { set(output, k_attributes(name, uid)); }
  void set_o(TensorPtr& output, const char* name, Uid uid) { set(output, o_attributes(name, uid)); }
  void set_v(TensorPtr& output, const char* name, Uid uid) { set(output, v_attributes(name, uid)); }
  void set_stats(TensorPtr& output) { set(output, stats_attributes()); }

  /// The mask's attributes, which both passes share.
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
                          std::int64_t d, const TensorPtr& offsets) const {
    Attributes attributes;
    attributes.set_name(name)
        .set_uid(uid)
        .set_dim({form_.batch, heads, tokens, d})
        .set_stride({tokens * heads * d, d, heads * d, 1});
    if (offsets) attributes.set_ragged_offset(offsets);
    return attributes;
  }
  Attributes q_attributes(const char* name, Uid uid) const {
    return tokens_first(name, uid, form_.max_tokens_q, problem_.heads_q, problem_.head_dim,
                        offsets_q_);
  }
  Attributes o_attributes(const char* name, Uid uid) const {
    return tokens_first(name, uid, form_.max_tokens_q, problem_.heads_q, problem_.value_dim(),
                        offsets_o_);
  }
  Attributes k_attributes(const char* name, Uid uid) const {
    return tokens_first(name, uid, form_.max_tokens_k, problem_.heads_k, problem_.head_dim,
                        offsets_k_);
  }
  Attributes v_attributes(const char* name, Uid uid) const {
    return tokens_first(name, uid, form_.max_tokens_k, problem_.heads_k, problem_.value_dim(),
                        offsets_v_);
  }
  /// The lse, [heads, tokens] for packed sequences too.
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
  TensorPtr offsets_o_, offsets_v_;  ///< those of q and k where v has their dimension
};

}  // namespace

bool has_value_offsets(const Problem& problem, const CudnnForm& form) {
  return form.packed() && problem.value_dim() != problem.head_dim;
}

bool takes_lengths(const CudnnForm& form) {
  return form.packed() ||
         (form.max_tokens_k % kPadMultiple != 0 && cudnn_library().version <= kLastVersionThatPads);
}

void describe_forward(fe::graph::Graph& graph, const Problem& problem, const CudnnForm& form) {
  Describe describe(graph, problem, form);
  const TensorPtr q = describe.like_q("q", kQ);
  const TensorPtr k = describe.like_k("k", kK);
  const TensorPtr v = describe.like_v("v", kV);
  fe::graph::SDPA_attributes attributes;
  attributes.set_name("sdpa").set_generate_stats(true);
  describe.set_mask(attributes);
  auto [o, stats] = graph.sdpa(q, k, v, attributes);
  describe.set_o(o, "o", kO);
  describe.set_stats(stats);
}

void describe_backward(fe::graph::Graph& graph, const Problem& problem, const CudnnForm& form) {
  Describe describe(graph, problem, form);
  const TensorPtr q = describe.like_q("q", kQ);
  const TensorPtr k = describe.like_k("k", kK);
  const TensorPtr v = describe.like_v("v", kV);
  const TensorPtr o = describe.like_o("o", kO);
  const TensorPtr dout = describe.like_o("dout", kDout);
  const TensorPtr stats = describe.stats();
  fe::graph::SDPA_backward_attributes attributes;
  attributes.set_name("sdpa_backward");
  attributes.set_deterministic_algorithm(problem.deterministic);
  describe.set_mask(attributes);
  if (form.packed()) {  // else the workspace is for batch × the longest sequence
    attributes.set_max_total_seq_len_q(problem.tokens_q).set_max_total_seq_len_kv(problem.tokens_k);
  }
  auto [dq, dk, dv] = graph.sdpa_backward(q, k, v, o, dout, stats, attributes);
  describe.set_q(dq, "dq", kDq);
  describe.set_k(dk, "dk", kDk);
  describe.set_v(dv, "dv", kDv);
}

}  // namespace longca::cudnn
