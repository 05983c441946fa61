// Naive attention: one head at a time, the full score matrix, its softmax, its product with V;
// backward with a second matrix. Threads share the matrices by blocks of rows, so the workspace
// does not depend on the thread count.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "attention/cpu/kernels.h"
#include "attention/cpu/naive_math.h"
#include "core/error.h"
#include "core/rounding.h"
#include "core/thread_pool.h"
#include "mask/list_of_head.h"

namespace longca {
namespace naive {
namespace {

constexpr std::int64_t kRows = 64;  ///< rows of a matrix per task

void for_row_blocks(std::int64_t rows,
                    const std::function<void(std::int64_t, std::int64_t)>& body) {
  ThreadPool::global().parallel_for(ceil_div(rows, kRows), [&](std::int64_t block, int) {
    body(block * kRows, std::min(rows, (block + 1) * kRows));
  });
}

/// One head of a tensor as float32 [tokens, dim].
template <typename T>
void load_head(const ConstTensorView& tensor, std::int64_t head, float* out) {
  for_row_blocks(tensor.tokens, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* row = tensor.row<T>(i, head);
      for (std::int64_t c = 0; c < tensor.dim; ++c) {
        out[i * tensor.dim + c] = static_cast<float>(row[c]);
      }
    }
  });
}

/// One head of a tensor as float32, transposed: [dim, tokens].
template <typename T>
void load_transposed(const ConstTensorView& tensor, std::int64_t head, float* out) {
  for_row_blocks(tensor.tokens, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t c = 0; c < tensor.dim; ++c) {
      for (std::int64_t i = begin; i < end; ++i) {
        out[c * tensor.tokens + i] = static_cast<float>(tensor.row<T>(i, head)[c]);
      }
    }
  });
}

template <typename T>
float dot(const float* a, const T* b, std::int64_t dim) {
  float sum = 0;
  for (std::int64_t c = 0; c < dim; ++c) sum += a[c] * static_cast<float>(b[c]);
  return sum;
}

/// Writes or adds float32 rows [tokens, dim] to one head of a gradient.
template <typename T>
void store_gradient(const float* rows, const TensorView& out, std::int64_t head, bool accumulate) {
  for_row_blocks(out.tokens, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float* row = rows + i * out.dim;
      for (std::int64_t c = 0; c < out.dim; ++c) {
        if (accumulate) {
          out.row<float>(i, head)[c] += row[c];
        } else {
          out.row<T>(i, head)[c] = T(row[c]);
        }
      }
    }
  });
}

template <typename T>
class NaivePlan final : public Plan {
 public:
  NaivePlan(const Problem& problem, const Mask& mask)
      : problem_(problem),
        mask_heads_(mask.heads()),
        intervals_(mask),
        scores_(floats(tq_ * tk_)),
        queries_(floats(tq_ * d_)),
        keys_(floats(tk_ * d_)),
        values_(floats(tk_ * dv_)),
        result_(floats(tq_ * std::max(d_, dv_))) {
    if (!problem.backward) return;
    score_gradients_ = floats(tq_ * tk_);
    output_gradients_ = floats(tq_ * dv_);
    keys_gradient_ = floats(tk_ * d_);
    values_gradient_ = floats(tk_ * dv_);
  }

  void forward(const ForwardArgs& args) override {
    for (std::int64_t head = 0; head < problem_.heads_q; ++head) {
      load_head<T>(args.v, head / problem_.group_size(), values_.as<float>());
      compute_scores(args.q, args.k, head);
      std::vector<float> lse(static_cast<std::size_t>(tq_));
      for_row_blocks(tq_, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t q = begin; q < end; ++q) {
          lse[q] = softmax_row(score_row(q), tk_, allowed(head, q), score_scale());
        }
      });
      multiply({scores_.as<float>(), tk_}, values_.as<float>(), dv_, result_.as<float>(), dv_, tq_,
               tk_);
      if (args.sink != nullptr) add_sinks(args.sink[head], lse);
      store_output(args, head, lse);
    }
  }

  void backward(const BackwardArgs& args) override {
    LONGCA_CHECK(problem_.backward, "the plan was made for the forward pass only");
    if (args.dsink != nullptr && !args.accumulate) std::fill_n(args.dsink, problem_.heads_q, 0.0F);
    for (std::int64_t head_k = 0; head_k < problem_.heads_k; ++head_k) {
      std::fill_n(keys_gradient_.as<float>(), tk_ * d_, 0.0F);
      std::fill_n(values_gradient_.as<float>(), tk_ * dv_, 0.0F);
      for (std::int64_t i = 0; i < problem_.group_size(); ++i) {
        backward_head(args, head_k * problem_.group_size() + i);
      }
      store_gradient<T>(keys_gradient_.as<float>(), args.dk, head_k, args.accumulate);
      store_gradient<T>(values_gradient_.as<float>(), args.dv, head_k, args.accumulate);
    }
  }

  std::int64_t workspace_bytes() const override {
    std::int64_t bytes = intervals_.bytes();
    for (const HostBuffer* buffer :
         {&scores_, &queries_, &keys_, &values_, &result_, &score_gradients_, &output_gradients_,
          &keys_gradient_, &values_gradient_}) {
      bytes += buffer->bytes();
    }
    return bytes;
  }

 private:
  static HostBuffer floats(std::int64_t count) { return HostBuffer(4 * count); }
  float* score_row(std::int64_t q) const { return scores_.as<float>() + q * tk_; }
  std::span<const Range> allowed(std::int64_t head, std::int64_t q) const {
    return intervals_.row(static_cast<int>(list_of_head(head, mask_heads_, problem_.heads_q)), q);
  }

  /// c[rows, n] = a[rows, k] · b[k, n].
  static void multiply(const Matrix& a, const float* b, std::int64_t n, float* c,
                       std::int64_t c_stride, std::int64_t rows, std::int64_t k) {
    for_row_blocks(rows, [&](std::int64_t begin, std::int64_t end) {
      std::fill(c + begin * c_stride, c + end * c_stride, 0.0F);
      add_product(a, b, n, c, c_stride, begin, end, k);
    });
  }
  static void add_product(const Matrix& a, const float* b, std::int64_t n, float* c,
                          std::int64_t c_stride, std::int64_t begin, std::int64_t end,
                          std::int64_t k) {
    const Matrix rows{a.data + begin * a.row_stride, a.row_stride, a.column_stride};
    multiply_add(rows, b, n, c + begin * c_stride, c_stride, end - begin, n, k);
  }

  /// What scores_ are to be multiplied by.
  float score_scale() const { return problem_.softcap > 0 ? 1 : problem_.scale(); }

  /// scores_ = q · kᵀ of one query head, unscaled, or capped; queries_ = q.
  void compute_scores(const ConstTensorView& q, const ConstTensorView& k, std::int64_t head) {
    load_head<T>(q, head, queries_.as<float>());
    load_transposed<T>(k, head / problem_.group_size(), keys_.as<float>());
    multiply({queries_.as<float>(), d_}, keys_.as<float>(), tk_, scores_.as<float>(), tk_, tq_, d_);
    if (problem_.softcap == 0) return;
    for_row_blocks(tq_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        cap_row(score_row(row), tk_, problem_.scale(), problem_.softcap);
      }
    });
  }

  void add_sinks(float sink, std::span<float> lse) {
    for (std::int64_t row = 0; row < tq_; ++row) {
      add_sink(result_.as<float>() + row * dv_, lse[static_cast<std::size_t>(row)], sink, dv_);
    }
  }

  void store_output(const ForwardArgs& args, std::int64_t head, std::span<const float> lse) {
    for_row_blocks(tq_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t q = begin; q < end; ++q) {
        const float* row = result_.as<float>() + q * dv_;
        if (args.accumulate) {
          merge_row(args.o.row<float>(q, head), args.lse.head(head)[q], row, lse[q], dv_);
          continue;
        }
        for (std::int64_t c = 0; c < dv_; ++c) args.o.row<T>(q, head)[c] = T(row[c]);
        args.lse.head(head)[q] = lse[q];
      }
    });
  }

  void backward_head(const BackwardArgs& args, std::int64_t head) {
    const std::int64_t head_k = head / problem_.group_size();
    float* p = scores_.as<float>();
    float* ds = score_gradients_.as<float>();
    float* dout = output_gradients_.as<float>();
    compute_scores(args.q, args.k, head);
    load_head<T>(args.dout, head, dout);
    load_transposed<T>(args.v, head_k, values_.as<float>());
    multiply({dout, dv_}, values_.as<float>(), tk_, ds, tk_, tq_, dv_);  // dP
    score_gradient(args, head);
    load_head<T>(args.k, head_k, keys_.as<float>());
    multiply({ds, tk_}, keys_.as<float>(), d_, result_.as<float>(), d_, tq_, tk_);
    store_gradient<T>(result_.as<float>(), args.dq, head, args.accumulate);
    for_row_blocks(tk_, [&](std::int64_t begin, std::int64_t end) {
      add_product({p, 1, tk_}, dout, dv_, values_gradient_.as<float>(), dv_, begin, end, tq_);
      add_product({ds, 1, tk_}, queries_.as<float>(), d_, keys_gradient_.as<float>(), d_, begin,
                  end, tq_);
    });
  }

  /// Turns the scores into P and dP into dS = P ∘ (dP − delta) · scale, with delta = dO · O per
  /// row, times the slopes of a softcap; adds the head's dsink = −Σ exp(sink − lse) delta.
  void score_gradient(const BackwardArgs& args, std::int64_t head) {
    std::vector<float> deltas(static_cast<std::size_t>(tq_));
    for_row_blocks(tq_, [&](std::int64_t begin, std::int64_t end) {
      std::vector<float> slopes(problem_.softcap > 0 ? static_cast<std::size_t>(tk_) : 0);
      for (std::int64_t q = begin; q < end; ++q) {
        float* p = score_row(q);
        if (!slopes.empty()) cap_slopes(p, tk_, problem_.softcap, slopes.data());
        weights_row(p, tk_, allowed(head, q), score_scale(), args.lse.head(head)[q]);
        const float* dout = output_gradients_.as<float>() + q * dv_;
        const float delta = with_type_of(
            args.o.dtype, [&]<typename O>(O) { return dot(dout, args.o.row<O>(q, head), dv_); });
        float* ds = score_gradients_.as<float>() + q * tk_;
        for (std::int64_t k = 0; k < tk_; ++k) ds[k] = p[k] * (ds[k] - delta) * problem_.scale();
        for (std::size_t k = 0; k < slopes.size(); ++k) ds[k] *= slopes[k];
        deltas[static_cast<std::size_t>(q)] = delta;
      }
    });
    if (args.dsink == nullptr) return;
    const float* lse = args.lse.head(head);
    for (std::int64_t q = 0; q < tq_; ++q) {
      if (lse[q] == -std::numeric_limits<float>::infinity()) continue;  // neither key nor sink
      args.dsink[head] -= std::exp(args.sink[head] - lse[q]) * deltas[static_cast<std::size_t>(q)];
    }
  }

  Problem problem_;
  int mask_heads_;
  std::int64_t tq_ = problem_.tokens_q;
  std::int64_t tk_ = problem_.tokens_k;
  std::int64_t d_ = problem_.head_dim;
  std::int64_t dv_ = problem_.value_dim();
  RowIntervals intervals_;
  HostBuffer scores_;            ///< [tq, tk]: q·kᵀ, then P
  HostBuffer queries_;           ///< [tq, d]
  HostBuffer keys_;              ///< [d, tk], or [tk, d]
  HostBuffer values_;            ///< [tk, dv], or [dv, tk]
  HostBuffer result_;            ///< [tq, dv]: o, or [tq, d]: dq
  HostBuffer score_gradients_;   ///< [tq, tk]: dP, then dS; backward only, as the following
  HostBuffer output_gradients_;  ///< [tq, dv]
  HostBuffer keys_gradient_;     ///< [tk, d], summed over the query heads of a KV head
  HostBuffer values_gradient_;   ///< [tk, dv], likewise
};

class NaiveCpu final : public Kernel {
 public:
  const Capabilities& capabilities() const override { return capabilities_; }

  Support supports(const Problem& problem, const Mask& mask) const override {
    return check_capabilities(capabilities_, problem, mask);
  }

  std::unique_ptr<Plan> plan(const Problem& problem, const Mask& mask) const override {
    return with_type_of(problem.dtype, [&]<typename T>(T) -> std::unique_ptr<Plan> {
      return std::make_unique<NaivePlan<T>>(problem, mask);
    });
  }

 private:
  Capabilities capabilities_ = {
      .name = "naive",
      .description = "scores, softmax, product with a full score matrix per head; any mask",
      .origin = "here",
      .device = DeviceKind::cpu,
      .dtypes = {DType::float32, DType::bfloat16, DType::float16},
      .head_dims = {},
      .value_dims = true,
      .deterministic = true,
      .sinks = true,
      .softcap = true,
  };
};

}  // namespace
}  // namespace naive

std::unique_ptr<Kernel> make_naive_cpu() {
  return std::make_unique<naive::NaiveCpu>();
}

}  // namespace longca
