#include "attention/kernels/slice/slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "attention/kernels/common/mma/instances.h"
#include "attention/kernels/common/mma/plan_tools.h"
#include "attention/kernels/slice/backward_pass.h"
#include "attention/kernels/slice/device_lists.h"
#include "attention/kernels/slice/launch.h"
#include "attention/kernels/slice/planner/pack.h"
#include "attention/kernels/slice/sm90/launch.h"
#include "core/device.h"
#include "core/error.h"

namespace longca {
namespace slice {
namespace {

constexpr char kName[] = "slice";

Device& gpu() {
  return Device::get(DeviceKind::cuda);
}

int group_size(const Problem& problem, const Mask& mask) {
  return shared_heads(problem.heads_q, problem.heads_k, mask.heads());
}

const cost::Platform& platform() {
  return cost::platform_of_card(gpu().properties().name);
}

/// Clusters of CTAs, and joints, are for results that are written, without a softcap, on sm_90a.
Tiling tiling(const Problem& problem, const Mask& mask, SlicePath path) {
  const int group = group_size(problem, mask);
  if (path == SlicePath::sm90 && !problem.accumulate && problem.softcap == 0) {
    const bool joins = sm90::has_unchecked(problem.dtype, dims_of(problem));
    return choose_tiling(mask, group, problem.head_dim, joins, platform());
  }
  return {.pack = choose_pack(mask, group, problem.head_dim, false, platform())};
}

bool is_padded(int head_dim) {
  return std::ranges::find(kPaddedDims, head_dim) != kPaddedDims.end();
}

/// On mma.sync the backward pass derives slopes 1 − tanh² from P again, the log of which is rounded
/// as LSE is: of smaller caps that is too much.
constexpr float kMinMmaSoftcap = 0.5F;

bool is_wide(const DimPair& dims) {
  return dims.head_dim > 128;
}

/// Which of the instances for wider heads this build lacks, or nothing.
Support check_wide(const Problem& problem) {
  const DimPair dims = dims_of(problem);
  if (!is_wide(dims)) return {};
  if (problem.dtype == DType::float16 && !mma::kWideFloat16) {
    return Support::unsupported(
        fmt::format("slice has no float16 for head dimension {} in this build "
                    "(LONGCA_INSTANTIATIONS=all builds it)",
                    to_string(dims)));
  }
  if (problem.softcap > 0 && dims.value_dim != dims.head_dim) {
    return Support::unsupported(
        fmt::format("slice has no softcap for head dimensions {}", to_string(dims)));
  }
  return {};
}

class SlicePlan final : public Plan {
 public:
  SlicePlan(const Problem& problem, const Mask& mask, SlicePath path)
      : problem_(problem), path_(path), lists_(mask, tiling(problem, mask, path), platform()) {
    section_heads_ = forward_section_heads(problem.tokens_k, dims_of(problem), problem.heads_k,
                                           gpu().properties().cache_bytes);
    if (problem.backward) backward_.emplace(problem, mask, path);
  }

  void forward(const ForwardArgs& args) override {
    const auto stream = static_cast<cudaStream_t>(args.stream);
    const ForwardParams params = params_of(args);
    LONGCA_CHECK(
        params.earlier.o.data == nullptr || (path_ == SlicePath::sm90 && !params.accumulate),
        "slice: an earlier result is merged on compute capability 9.0 without accumulate alone");
    if (path_ == SlicePath::sm80) {
      return launch_sm80_forward(params, problem_.dtype, problem_.head_dim, stream);
    }
    launch_forward(params, problem_.dtype, dims_of(problem_), stream);
  }

  void backward(const BackwardArgs& args) override {
    LONGCA_CHECK(backward_.has_value(), "slice: the plan was made for the forward pass only");
    LONGCA_CHECK(args.key_gradients == KeyGradients::as_dq || path_ == SlicePath::sm90,
                 "slice's sm80 backward pass sums no key gradients");
    LONGCA_CHECK(args.held.empty() || (path_ == SlicePath::sm90 && !args.accumulate),
                 "slice: a dq of 16 bits is added to on compute capability 9.0 without accumulate "
                 "alone");
    backward_->run(args);
  }

  std::int64_t keep_rows(std::int64_t max_bytes) override {
    return backward_ ? backward_->keep_rows(max_bytes) : 0;
  }

  void prepare_rows(const BackwardArgs& args) override {
    LONGCA_CHECK(backward_.has_value(), "slice: the plan was made for the forward pass only");
    backward_->prepare_rows(args);
  }

  std::int64_t workspace_bytes() const override {
    std::int64_t bytes = lists_.bytes();
    if (backward_) bytes += backward_->own_bytes() + backward_->scratch().own_bytes();
    return bytes;
  }

  PlanScratch* scratch() override { return backward_ ? &backward_->scratch() : nullptr; }

  std::map<std::string, std::string> notes() const override {
    std::map<std::string, std::string> notes = {
        {"path", path_ == SlicePath::sm90 ? "sm_90a" : "mma.sync"},
        {"pack", fmt::to_string(lists_.tiling().pack)}};
    if (lists_.tiling().row_pairs) notes["pairs"] = "query tiles";
    if (backward_) notes["backward_pack"] = fmt::to_string(backward_->pack());
    return notes;
  }

 private:
  ForwardParams params_of(const ForwardArgs& args) const {
    ForwardParams params{attention_args(kName, problem_, args)};
    params.softcap = softcap_;
    params.sink = args.sink;
    params.accumulate = args.accumulate;
    params.earlier = earlier_arg(kName, args.earlier);
    params.lists = lists_.args();
    params.section_heads = section_heads_;
    params.work_counter = lists_.work_counter();
    return params;
  }

  Problem problem_;
  SlicePath path_;
  Softcap softcap_ = make_softcap(problem_.softcap, problem_.scale());
  UploadedLists lists_;
  int section_heads_ = 1;  ///< KV heads
  std::optional<BackwardPass> backward_;
};

class SliceKernel final : public Kernel {
 public:
  explicit SliceKernel(SlicePath path) : path_(path) {
    if (path != SlicePath::sm80) return;
    std::erase_if(capabilities_.head_dims, [](int dim) { return is_padded(dim) || dim > 128; });
    capabilities_.dim_pairs.clear();
  }

  bool sums_key_gradients() const override { return path() == SlicePath::sm90; }
  bool adds_to_dq() const override { return path() == SlicePath::sm90; }
  bool merges_earlier(const Problem& problem) const override {
    return path() == SlicePath::sm90 && can_merge_earlier(capabilities_, problem);
  }

  const Capabilities& capabilities() const override { return capabilities_; }

  Support supports(const Problem& problem, const Mask& mask) const override {
    if (Support support = check_capabilities(capabilities_, problem, mask); !support.ok()) {
      return support;
    }
    if (Support lists = check_head_lists(problem, mask); !lists.ok()) return lists;
    if (path() == SlicePath::sm90) return check_wide(problem);
    if (is_padded(problem.head_dim) || is_wide(dims_of(problem))) {
      return Support::unsupported(
          fmt::format("slice has head dimension {} on GPUs of compute capability 9.0 only",
                      to_string(dims_of(problem))));
    }
    if (problem.backward && problem.softcap > 0 && problem.softcap < kMinMmaSoftcap) {
      return Support::unsupported(
          fmt::format("slice has softcap {}, less than {}, backward on GPUs of compute capability "
                      "9.0 only",
                      problem.softcap, kMinMmaSoftcap));
    }
    const int needed = problem.backward
                           ? std::max(sm80_forward_shared_bytes(), sm80_backward_shared_bytes())
                           : sm80_forward_shared_bytes();
    const int given = mma::device_shared_bytes();
    if (given >= needed) return {};
    return Support::unsupported(fmt::format(
        "slice's {} pass needs {} bytes of shared memory per CTA, and the {} gives {}",
        problem.backward ? "backward" : "forward", needed, gpu().properties().name, given));
  }

  std::unique_ptr<Plan> plan(const Problem& problem, const Mask& mask) const override {
    return std::make_unique<SlicePlan>(problem, mask, path());
  }

 private:
  SlicePath path() const {
    if (path_ != SlicePath::automatic) return path_;
    return gpu().properties().architecture == 90 ? SlicePath::sm90 : SlicePath::sm80;
  }

  SlicePath path_;
  Capabilities capabilities_ = slice_capabilities();
};

}  // namespace
}  // namespace slice

std::unique_ptr<Kernel> make_slice() {
  return make_slice(SlicePath::automatic);
}

std::unique_ptr<Kernel> make_slice(SlicePath path) {
  return std::make_unique<slice::SliceKernel>(path);
}

}  // namespace longca
