#include "attention/adapters/cudnn/form.h"

#include <fmt/format.h>

#include <algorithm>

#include "attention/absent_kernel.h"
#include "attention/adapters/cudnn/cudnn.h"
#include "mask/convert.h"

namespace longca {
namespace {

CudnnForm band(const Mask& mask, const WindowForm& window) {
  CudnnForm form;
  form.max_tokens_q = mask.q_tokens();
  form.max_tokens_k = mask.k_tokens();
  if (window.left >= 0) form.left_bound = window.left + 1;
  if (window.right >= 0) form.right_bound = window.right;
  form.bottom_right = (form.left_bound || form.right_bound) && mask.q_tokens() != mask.k_tokens();
  return form;
}

CudnnForm packed(const DocumentForm& documents) {
  CudnnForm form;
  form.cu_seqlens = documents.cu_seqlens;
  form.batch = static_cast<std::int64_t>(form.cu_seqlens.size()) - 1;
  const std::vector<std::int32_t> lengths = sequence_lengths(form);
  form.max_tokens_q = form.max_tokens_k = *std::ranges::max_element(lengths);
  if (documents.causal) form.right_bound = 0;
  return form;
}

}  // namespace

std::optional<CudnnForm> cudnn_form(const Mask& mask) {
  if (const auto window = window_form(mask)) return band(mask, *window);
  if (const auto documents = document_form(mask)) return packed(*documents);
  return std::nullopt;
}

std::vector<std::int64_t> ragged_offsets(const CudnnForm& form, std::int64_t elements) {
  std::vector<std::int64_t> offsets = form.cu_seqlens;
  for (std::int64_t& offset : offsets) offset *= elements;
  return offsets;
}

std::vector<std::int32_t> sequence_lengths(const CudnnForm& form) {
  std::vector<std::int32_t> lengths;
  lengths.reserve(form.cu_seqlens.size());
  for (std::size_t i = 1; i < form.cu_seqlens.size(); ++i) {
    lengths.push_back(static_cast<std::int32_t>(form.cu_seqlens[i] - form.cu_seqlens[i - 1]));
  }
  return lengths;
}

Capabilities cudnn_capabilities() {
  Capabilities can;
  can.name = "cudnn";
  can.description = "cuDNN's fused attention; full, causal, sliding windows, documents";
  can.origin = "cuDNN 9, through its C++ frontend";
  can.device = DeviceKind::cuda;
  can.min_architecture = 80;
  can.dtypes = {DType::bfloat16, DType::float16};
  can.block_masks = false;
  can.accumulate = false;
  can.value_dims = true;
  can.deterministic = true;
  can.strided = false;
  can.computes_all_of_windows_backward = true;
  can.launches_longest_document = true;
  can.group_gradients = GroupGradients::of_each_head;
  // Of packed documents dK and dV of each query head are float32.
  can.backward_bytes = {.per_q = 4, .per_row = 4, .grouped_per_q = 4, .packed_per_q = 4};
  return can;
}

Support cudnn_can_express(const Problem& problem, const Mask& mask) {
  static const Capabilities capabilities = cudnn_capabilities();
  if (auto support = check_problem(capabilities, problem, mask); !support.ok()) return support;
  if (problem.head_dim % 8 != 0 || problem.value_dim() % 8 != 0 || problem.head_dim > 256) {
    return Support::unsupported(fmt::format(
        "cuDNN's attention needs a head dimension that is a multiple of 8 up to 256, not {}",
        to_string(dims_of(problem))));
  }
  if (problem.tokens_q == 0 || problem.tokens_k == 0) {
    return Support::unsupported("cuDNN's attention needs at least one query and one key");
  }
  const auto form = cudnn_form(mask);
  if (form && form->bottom_right && problem.tokens_q > problem.tokens_k) {
    return Support::unsupported(
        fmt::format("cuDNN's bottom-right diagonal needs a key for every query: {} keys are fewer "
                    "than {} queries",
                    problem.tokens_k, problem.tokens_q));
  }
  if (form) return {};
  return Support::unsupported(
      "cuDNN's attention takes one diagonal band (left and right bound) or packed sequences, all "
      "full or all causal: this mask is neither");
}

#ifndef LONGCA_WITH_CUDNN
std::unique_ptr<Kernel> make_cudnn() {
  return std::make_unique<AbsentKernel>(
      cudnn_capabilities(),
      "this build is without cuDNN: install cuDNN 9 with its headers (NVIDIA's package "
      "cudnn9-cuda-13), let scripts/setup fetch its frontend's, and build again",
      cudnn_can_express);
}
#endif

}  // namespace longca
