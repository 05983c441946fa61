// A complete plug-in kernel: attention one query row at a time, forward and backward. It is slow
// but short, and enters every command of longca without touching its tree
// (docs/guide/adding-a-kernel.md).
//
//   g++ -std=c++20 -O3 -shared -fPIC -I LONGCA/build/release/include rowwise.cpp -o rowwise.so
//   longca bench --plugin ./rowwise.so -a kernel=rowwise,flash -a mask=causal

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "attention/api/plugin.h"
#include "core/thread_pool.h"

namespace {

using namespace longca;

std::vector<float> load(const ConstTensorView& t, std::int64_t token, std::int64_t head) {
  std::vector<float> row(static_cast<std::size_t>(t.dim));
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = t.dtype == DType::float32 ? t.row<float>(token, head)[i]
                                       : static_cast<float>(t.row<BFloat16>(token, head)[i]);
  }
  return row;
}

void store(const std::vector<float>& row, const TensorView& t, std::int64_t token,
           std::int64_t head) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (t.dtype == DType::float32) {
      t.row<float>(token, head)[i] = row[i];
    } else {
      t.row<BFloat16>(token, head)[i] = BFloat16(row[i]);
    }
  }
}

float dot(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void add_scaled(std::vector<float>& to, float factor, const std::vector<float>& row) {
  for (std::size_t i = 0; i < row.size(); ++i) to[i] += factor * row[i];
}

class RowwisePlan : public Plan {
 public:
  RowwisePlan(const Problem& problem, Mask mask) : problem_(problem), mask_(std::move(mask)) {}

  void forward(const ForwardArgs& args) override {
    ThreadPool::global().parallel_for(problem_.heads_q, [&](std::int64_t head, int) {
      for (std::int64_t q = 0; q < problem_.tokens_q; ++q) forward_row(args, head, q);
    });
  }

  /// One thread per KV head: the query heads of its group add into the same dK and dV.
  void backward(const BackwardArgs& args) override {
    ThreadPool::global().parallel_for(problem_.heads_k, [&](std::int64_t kv_head, int) {
      const auto zeros = std::vector<float>(static_cast<std::size_t>(problem_.head_dim));
      std::vector<std::vector<float>> dk(static_cast<std::size_t>(problem_.tokens_k), zeros);
      std::vector<std::vector<float>> dv = dk;
      for (int i = 0; i < problem_.group_size(); ++i) {
        const std::int64_t head = kv_head * problem_.group_size() + i;
        for (std::int64_t q = 0; q < problem_.tokens_q; ++q) backward_row(args, head, q, dk, dv);
      }
      for (std::int64_t k = 0; k < problem_.tokens_k; ++k) {
        store(dk[static_cast<std::size_t>(k)], args.dk, k, kv_head);
        store(dv[static_cast<std::size_t>(k)], args.dv, k, kv_head);
      }
    });
  }

  std::int64_t workspace_bytes() const override { return 0; }

 private:
  std::int64_t kv_head(std::int64_t head) const { return head / problem_.group_size(); }

  /// Index of the query head's block list; 0 for a mask that is the same for all heads.
  int mask_head(std::int64_t head) const {
    return static_cast<int>(head * mask_.heads() / problem_.heads_q);
  }

  /// Calls body(k) for every key that the row sees.
  template <typename Body>
  void for_each_key(std::int64_t head, std::int64_t q, const Body& body) const {
    for (const Range keys : mask_.key_intervals(mask_head(head), q)) {
      for (std::int64_t k = keys.begin; k < keys.end; ++k) body(k);
    }
  }

  void forward_row(const ForwardArgs& args, std::int64_t head, std::int64_t q) const {
    const auto query = load(args.q, q, head);
    std::vector<float> sum(query.size());
    float top = -std::numeric_limits<float>::infinity();
    float weight = 0;
    for_each_key(head, q, [&](std::int64_t k) {
      const float score = problem_.scale() * dot(query, load(args.k, k, kv_head(head)));
      const float next = std::max(top, score);
      const float rescale = std::exp(top - next);
      const float p = std::exp(score - next);
      for (float& x : sum) x *= rescale;
      add_scaled(sum, p, load(args.v, k, kv_head(head)));
      weight = weight * rescale + p;
      top = next;
    });
    for (float& x : sum) x = weight > 0 ? x / weight : 0;
    store(sum, args.o, q, head);
    args.lse.head(head)[q] = weight > 0 ? top + std::log(weight) : top;
  }

  void backward_row(const BackwardArgs& args, std::int64_t head, std::int64_t q,
                    std::vector<std::vector<float>>& dk,
                    std::vector<std::vector<float>>& dv) const {
    const auto query = load(args.q, q, head);
    const auto dout = load(args.dout, q, head);
    const float delta = dot(dout, load(args.o, q, head));
    std::vector<float> dq(query.size());
    for_each_key(head, q, [&](std::int64_t k) {
      const auto key = load(args.k, k, kv_head(head));
      const float p = std::exp(problem_.scale() * dot(query, key) - args.lse.head(head)[q]);
      const float ds = p * (dot(dout, load(args.v, k, kv_head(head))) - delta) * problem_.scale();
      add_scaled(dv[static_cast<std::size_t>(k)], p, dout);
      add_scaled(dk[static_cast<std::size_t>(k)], ds, query);
      add_scaled(dq, ds, key);
    });
    store(dq, args.dq, q, head);
  }

  const Problem problem_;
  const Mask mask_;
};

class RowwiseKernel : public Kernel {
 public:
  const Capabilities& capabilities() const override {
    static const Capabilities can{.name = "rowwise",
                                  .description = "one query row at a time; the example plug-in",
                                  .origin = "examples/plugin",
                                  .dtypes = {DType::float32, DType::bfloat16},
                                  .head_dims = {},
                                  .accumulate = false};
    return can;
  }
  Support supports(const Problem& problem, const Mask& mask) const override {
    return check_capabilities(capabilities(), problem, mask);
  }
  std::unique_ptr<Plan> plan(const Problem& problem, const Mask& mask) const override {
    return std::make_unique<RowwisePlan>(problem, mask);
  }
};

void add_kernels(KernelRegistry& registry) {
  registry.add(std::make_unique<RowwiseKernel>());
}

}  // namespace

const longca::PluginInfo* longca_plugin() {
  static const PluginInfo info{.name = "rowwise", .add_kernels = add_kernels};
  return &info;
}
