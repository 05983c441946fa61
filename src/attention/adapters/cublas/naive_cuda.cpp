#include "attention/adapters/cublas/naive_cuda.h"

#include <fmt/format.h>

#include <algorithm>

#include "attention/adapters/cublas/library.h"
#include "attention/adapters/cublas/products.h"
#include "attention/adapters/cublas/softmax.h"
#include "attention/kernels/common/sink.h"
#include "core/device.h"
#include "core/error.h"
#include "core/rounding.h"

namespace longca {
namespace naive {
namespace {

/// Rows of scores are aligned to 32 bytes.
constexpr std::int64_t kPitchMultiple = 8;

cudaStream_t cuda_stream(Stream stream) {
  return static_cast<cudaStream_t>(stream);
}

std::int64_t pitch_of(const Problem& p) {
  return std::max(round_up(p.tokens_k, kPitchMultiple), kPitchMultiple);
}

/// Bytes of all score matrices, as a double, because they may exceed 2^63.
double score_bytes(const Problem& p) {
  const double one =
      4.0 * p.heads_q * static_cast<double>(p.tokens_q) * static_cast<double>(pitch_of(p));
  return p.backward ? 2 * one : one;
}

/// Throws OutOfMemory with the reason before anything is allocated: a failing allocation would also
/// release the allocator's cache.
void require_memory(const Problem& p) {
  const double needed = score_bytes(p);
  const auto free = static_cast<double>(Device::get(DeviceKind::cuda).available_bytes());
  if (needed <= free) return;
  throw OutOfMemory(fmt::format(
      "naive keeps {:.1f} GB of scores{} for {} heads × {} queries × {} keys, and {:.1f} GB of "
      "device memory are free",
      needed / 1e9, p.backward ? " and their gradients" : "", p.heads_q, p.tokens_q, p.tokens_k,
      free / 1e9));
}

class NaivePlan final : public Plan {
 public:
  NaivePlan(const Problem& problem, const Mask& mask) : problem_(problem), mask_(mask) {
    require_memory(problem);
    scores_ = matrices();
    if (problem.accumulate) {
      o_ = Tensor(memory(), DType::float32, problem.tokens_q, problem.heads_q, problem.value_dim());
      lse_ = Lse(memory(), problem.heads_q, problem.tokens_q);
    }
    if (!problem.backward) return;
    gradients_ = matrices();
    if (!problem.accumulate && problem.dtype != DType::float32 && problem.group_size() > 1) {
      sum_ = Tensor(memory(), DType::float32, problem.tokens_k, problem.heads_k, problem.head_dim);
    }
  }

  void forward(const ForwardArgs& args) override {
    LONGCA_CHECK(args.accumulate == problem_.accumulate, "planned for accumulate = {}",
                 problem_.accumulate);
    const cudaStream_t stream = cuda_stream(args.stream);
    const LseView lse = args.accumulate ? lse_.view() : args.lse;
    const TensorView o = args.accumulate ? o_.view() : args.o;
    products_.scores(args.q, args.k, view(scores_), stream);
    softmax_in_place(view(scores_), problem_.dtype, mask_, rule_, args.sink, lse, stream);
    products_.rows(view(scores_), args.v, o, false, stream);
    if (args.accumulate) merge_results(args.o, args.lse, o, lse, stream);
  }

  void backward(const BackwardArgs& args) override {
    LONGCA_CHECK(problem_.backward, "the plan was made for the forward pass only");
    LONGCA_CHECK(args.accumulate == problem_.accumulate, "planned for accumulate = {}",
                 problem_.accumulate);
    const cudaStream_t stream = cuda_stream(args.stream);
    products_.scores(args.q, args.k, view(scores_), stream);
    products_.scores(args.dout, args.v, view(gradients_), stream);
    gradients_in_place(view(scores_), view(gradients_), problem_.dtype, mask_, rule_, args.o,
                       args.dout, args.lse, stream);
    products_.rows(view(gradients_), args.k, args.dq, args.accumulate, stream);
    sum_columns(view(scores_), args.dout, args.dv, args.accumulate, stream);
    sum_columns(view(gradients_), args.q, args.dk, args.accumulate, stream);
    if (args.dsink != nullptr) {
      sum_sink_gradients(args.sink, args.dsink, args.accumulate, args.o, args.dout, args.lse,
                         stream);
    }
  }

  std::int64_t workspace_bytes() const override {
    return mask_.bytes() + products_.workspace_bytes() + scores_.bytes() + gradients_.bytes() +
           sum_.bytes() + o_.bytes() + lse_.bytes();
  }
  std::map<std::string, std::string> notes() const override {
    return {{"cublas", cublas_version()}};
  }

 private:
  static MemoryTracker& memory() { return Device::get(DeviceKind::cuda).memory(); }

  Buffer matrices() const {
    return {memory(), 4 * problem_.heads_q * problem_.tokens_q * pitch_of(problem_)};
  }
  Scores view(const Buffer& buffer) const {
    return {buffer.as<float>(), problem_.heads_q, problem_.tokens_q, problem_.tokens_k,
            pitch_of(problem_)};
  }

  /// Sums over the heads of a group in float32 and rounds once.
  void sum_columns(const Scores& weights, const ConstTensorView& a, const TensorView& out,
                   bool added, cudaStream_t stream) {
    if (sum_.bytes() == 0) return products_.columns(weights, a, out, added, stream);
    TensorView sum = sum_.view();
    sum.dim = out.dim;  // of v it may be smaller
    products_.columns(weights, a, sum, false, stream);
    round_tensor(sum, out, stream);
  }

  Problem problem_;
  ScoreRule rule_{problem_.scale(), problem_.softcap};
  DeviceRowMask mask_;
  Products products_;
  Buffer scores_;     ///< q·kᵀ, then P
  Buffer gradients_;  ///< dP, then dS; backward only
  Tensor sum_;        ///< float32 dk or dv, if summed over a group of heads in another dtype
  Tensor o_;          ///< the result over these keys, if problem.accumulate
  Lse lse_;           ///< likewise
};

class NaiveCuda final : public Kernel {
 public:
  const Capabilities& capabilities() const override { return capabilities_; }

  Support supports(const Problem& problem, const Mask& mask) const override {
    if (auto support = check_capabilities(capabilities_, problem, mask); !support.ok()) {
      return support;
    }
    return cublas_library().support;
  }

  std::string version() const override {
    const std::string version = cublas_version();
    return version.empty() ? "" : "cuBLAS " + version;
  }

  std::unique_ptr<Plan> plan(const Problem& problem, const Mask& mask) const override {
    return std::make_unique<NaivePlan>(problem, mask);
  }

 private:
  Capabilities capabilities_ = naive_cuda_capabilities();
};

}  // namespace
}  // namespace naive

std::unique_ptr<Kernel> make_naive_cuda() {
  return std::make_unique<naive::NaiveCuda>();
}

}  // namespace longca
