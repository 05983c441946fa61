#include "attention/cpu/dense_attention.h"

#include <cmath>
#include <limits>

namespace longca::test {
namespace {

double dot(const double* a, const double* b, std::int64_t dim) {
  double sum = 0;
  for (std::int64_t k = 0; k < dim; ++k) sum += a[k] * b[k];
  return sum;
}

void add(double* to, double factor, const double* x, std::int64_t dim) {
  for (std::int64_t k = 0; k < dim; ++k) to[k] += factor * x[k];
}

Doubles to_doubles(const ConstTensorView& x) {
  Doubles out(x.tokens, x.heads, x.dim);
  for (std::int64_t t = 0; t < x.tokens; ++t) {
    for (std::int64_t h = 0; h < x.heads; ++h) {
      for (std::int64_t k = 0; k < x.dim; ++k) out.row(t, h)[k] = element(x, t, h, k);
    }
  }
  return out;
}

/// One query row: its keys, their weights, o and lse, then its share of the gradients.
class Row {
 public:
  Row(const Problem& problem, const Doubles& q, const Doubles& k, const Doubles& v,
      const float* sinks, std::int64_t head, std::int64_t row, const std::vector<Range>& intervals)
      : scale_(problem.scale()),
        sink_(sinks == nullptr ? -std::numeric_limits<double>::infinity()
                               : static_cast<double>(sinks[head])),
        kv_head_(head / problem.group_size()),
        head_(head),
        row_(row),
        q_(q),
        k_(k),
        v_(v) {
    const auto cap = static_cast<double>(problem.softcap);
    double largest = sink_;
    for (const Range& range : intervals) {
      for (std::int64_t key = range.begin; key < range.end; ++key) {
        keys_.push_back(key);
        const double score = scale_ * dot(q.row(row, head), k.row(key, kv_head_), q.dim);
        const double t = cap > 0 ? std::tanh(score / cap) : 0.0;
        weights_.push_back(cap > 0 ? cap * t : score);
        slopes_.push_back(1 - t * t);
        largest = std::max(largest, weights_.back());
      }
    }
    double sum = sinks == nullptr ? 0 : std::exp(sink_ - largest);
    for (double& weight : weights_) sum += weight = std::exp(weight - largest);
    for (double& weight : weights_) weight /= sum;
    lse_ = keys_.empty() ? sink_ : largest + std::log(sum);
  }

  void forward(DenseAttention& out, DenseFault fault) const {
    const bool sinkless = fault == DenseFault::lse_without_sink;
    out.lse[static_cast<std::size_t>(head_) * out.o.values.size() /
                static_cast<std::size_t>(out.o.heads * out.o.dim) +
            static_cast<std::size_t>(row_)] =
        sinkless ? std::log(std::exp(lse_) - std::exp(sink_)) : lse_;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      add(out.o.row(row_, head_), weights_[i], v_.row(keys_[i], kv_head_), v_.dim);
    }
  }

  void backward(const Doubles& dout, DenseAttention& out, DenseFault fault) const {
    const double* gradient = dout.row(row_, head_);
    const double sink_weight = std::exp(sink_ - lse_);
    double delta = dot(gradient, out.o.row(row_, head_), v_.dim);
    if (!keys_.empty() && sink_weight > 0) {
      out.dsink[static_cast<std::size_t>(head_)] -= sink_weight * delta;
    }
    if (fault == DenseFault::sink_sees_no_value) delta /= 1 - sink_weight;
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const double slope = fault == DenseFault::slope_left_out ? 1 : slopes_[i];
      const double score_gradient = scale_ * slope * weights_[i] *
                                    (dot(gradient, v_.row(keys_[i], kv_head_), v_.dim) - delta);
      add(out.dv.row(keys_[i], kv_head_), weights_[i], gradient, v_.dim);
      add(out.dq.row(row_, head_), score_gradient, k_.row(keys_[i], kv_head_), k_.dim);
      add(out.dk.row(keys_[i], kv_head_), score_gradient, q_.row(row_, head_), q_.dim);
    }
  }

 private:
  double scale_;
  double sink_;  ///< −∞: none
  std::int64_t kv_head_, head_, row_;
  const Doubles &q_, &k_, &v_;
  std::vector<std::int64_t> keys_;
  std::vector<double> weights_;
  std::vector<double> slopes_;  ///< 1 − tanh² of the softcap
  double lse_ = 0;
};

}  // namespace

double element(const ConstTensorView& x, std::int64_t token, std::int64_t head, std::int64_t k) {
  return with_type_of(x.dtype, [&]<typename T>(T) {
    return static_cast<double>(static_cast<float>(x.row<T>(token, head)[k]));
  });
}

DenseAttention dense_attention(const Problem& problem, const Mask& mask, const Inputs& inputs,
                               DenseFault fault) {
  const Doubles q = to_doubles(inputs.q.view()), k = to_doubles(inputs.k.view());
  const Doubles v = to_doubles(inputs.v.view()), dout = to_doubles(inputs.dout.view());
  DenseAttention out;
  out.o = Doubles(problem.tokens_q, problem.heads_q, problem.value_dim());
  out.dq = Doubles(problem.tokens_q, problem.heads_q, problem.head_dim);
  out.dk = Doubles(problem.tokens_k, problem.heads_k, problem.head_dim);
  out.dv = Doubles(problem.tokens_k, problem.heads_k, problem.value_dim());
  out.dsink.resize(static_cast<std::size_t>(problem.heads_q));
  out.lse.resize(static_cast<std::size_t>(problem.heads_q * problem.tokens_q));
  for (std::int64_t head = 0; head < problem.heads_q; ++head) {
    const int mask_head = static_cast<int>(head * mask.heads() / problem.heads_q);
    for (std::int64_t t = 0; t < problem.tokens_q; ++t) {
      const Row row(problem, q, k, v, inputs.sink_logits(), head, t,
                    mask.key_intervals(mask_head, t));
      row.forward(out, fault);
      row.backward(dout, out, fault);
    }
  }
  return out;
}

}  // namespace longca::test
