#include <fmt/format.h>

#include <utility>

#include "attention/adapters/python/python_kernel.h"
#include "mask/convert.h"

namespace longca {
namespace {

Support takes_full_and_causal(const Mask& mask) {
  const auto form = window_form(mask);
  if (form && form->left == -1 && (form->right == -1 || form->right == 0)) return {};
  return Support::unsupported("its arguments are is_causal or nothing: full and causal masks only");
}

Support takes_documents(const Mask& mask) {
  if (document_form(mask)) return {};
  return Support::unsupported(
      "its arguments are cu_seqlens and causal: documents that are all full or all causal");
}

Support takes_windows_and_documents(const Mask& mask) {
  if (window_form(mask) || document_form(mask)) return {};
  return Support::unsupported(
      "its arguments are cu_seqlens, causal and window_size: documents that are all full or all "
      "causal, or one window");
}

Support takes_column_intervals(const Mask& mask) {
  if (column_intervals(mask, 0)) return {};
  return Support::unsupported(
      "its startend_row_indices hold one masked interval below and one above the diagonal per key "
      "column: this mask needs more");
}

Capabilities row(std::string name, std::string description, std::string origin) {
  Capabilities can;
  can.name = std::move(name);
  can.description = std::move(description);
  can.origin = std::move(origin);
  can.device = DeviceKind::cuda;
  can.least_architecture = 80;
  can.dtypes = {DType::bfloat16};
  can.block_masks = false;
  can.accumulate = false;
  can.strided = false;  // PyTorch's results are allocated in the memory of the outputs
  return can;
}

Capabilities on_hopper(Capabilities can) {
  can.only_architecture = 90;
  return can;
}

Capabilities by_own_forward(Capabilities can) {
  can.gradient_of_parts = false;
  return can;
}

Capabilities fa1() {
  Capabilities can = row("fa1", "FlashAttention 1: full and causal documents", "flash-attn 1.0.9");
  can.gqa = false;
  can.head_dims = {32, 64, 128};
  return by_own_forward(std::move(can));
}

}  // namespace

std::vector<PythonRow> python_rows() {
  return {
      {row("sdpa", "PyTorch's scaled_dot_product_attention by a fused back end", "torch"),
       takes_full_and_causal},
      {row("fa2", "FlashAttention 2 as PyTorch carries it", "torch"), takes_windows_and_documents},
      {by_own_forward(row("flex", "PyTorch's FlexAttention, compiled", "torch"))},
      {fa1(), takes_documents},
      {on_hopper(row("fa3", "FlashAttention 3", "flash_attn_interface or fa3-fwd")),
       takes_windows_and_documents},
      {by_own_forward(on_hopper(
          row("ffa", "Flex-Flash-Attention: any slice mask (untried)", "magi_attention")))},
      {by_own_forward(row("flashmask", "FlashMask: masked row intervals per key (untried)",
                          "paddlepaddle-gpu 3")),
       takes_column_intervals},
  };
}

}  // namespace longca
