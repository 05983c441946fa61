#include <fmt/format.h>

#include <utility>

#include "attention/adapters/block_form.h"
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

Support takes_flex_blocks(const Mask& mask) {
  if (mask.blocks() == nullptr || keeps_whole_blocks(mask) || keeps_causal_blocks(mask)) return {};
  return Support::unsupported(
      "its block lists here are over a mask that is full, or causal with as many queries as keys");
}

Support expect_multiples_of(std::int64_t size, const BlockLists& blocks) {
  for (const auto* bounds : {&blocks.q_bounds, &blocks.k_bounds}) {
    if (are_multiples_of(size, *bounds)) continue;
    return Support::unsupported(
        fmt::format("its blocks are of {} tokens: this mask has blocks of up to {}, which are no "
                    "multiples",
                    size, largest_block(*bounds)));
  }
  return {};
}

/// Lists of tiles, kSize tokens long and wide, that are kept or not.
template <std::int64_t kSize>
Support takes_whole_blocks_of(const Mask& mask) {
  if (mask.blocks() == nullptr) return {};
  if (!keeps_whole_blocks(mask)) {
    return Support::unsupported(
        "its lists are of whole blocks here: none that a causal or other mask cuts");
  }
  return expect_multiples_of(kSize, *mask.blocks());
}

/// Video Sparse Attention: lists of blocks of up to 64 tokens.
Support takes_blocks_of_64(const Mask& mask) {
  constexpr std::int64_t kBlock = 64;
  const BlockLists& blocks = *mask.blocks();
  if (!keeps_whole_blocks(mask)) {
    return Support::unsupported(
        "its lists keep whole blocks: none that a causal or other mask cuts");
  }
  for (const auto* bounds : {&blocks.q_bounds, &blocks.k_bounds}) {
    const std::int64_t largest = largest_block(*bounds);
    if (largest > kBlock && !are_multiples_of(kBlock, *bounds)) {
      return Support::unsupported(
          fmt::format("its blocks hold up to {} tokens: this mask has blocks of up to {}, which "
                      "are no multiples",
                      kBlock, largest));
    }
  }
  return {};
}

Support takes_blocks_of_128(const Mask& mask) {
  if (!keeps_whole_blocks(mask) && !keeps_causal_blocks(mask)) {
    return Support::unsupported("its block mask goes with a full or a square causal mask only");
  }
  return expect_multiples_of(128, *mask.blocks());
}

Capabilities row(std::string name, std::string description, std::string origin) {
  Capabilities can;
  can.name = std::move(name);
  can.description = std::move(description);
  can.origin = std::move(origin);
  can.device = DeviceKind::cuda;
  can.min_architecture = 80;
  can.dtypes = {DType::bfloat16};
  can.block_masks = false;
  can.accumulate = false;
  can.strided = false;  // PyTorch's results are allocated in the memory of the outputs
  return can;
}

/// FlashAttention 2: dQ in float32, dK and dV of each query head. cuDNN's likewise.
constexpr BackwardBytes kFlashBytes = {.per_q = 4, .per_row = 4, .grouped_per_q = 4};

/// O is kept by autograd. The gradients are in memory of their own, in another order than the
/// outputs': of as many KV heads as query heads that of one of them serves another.
constexpr BackwardBytes kFlexBytes = {.per_q = 4, .per_k = 2, .per_row = 4, .grouped_per_k = 2};

Capabilities on_hopper(Capabilities can) {
  can.only_architecture = 90;
  return can;
}

Capabilities by_own_forward(Capabilities can) {
  can.gradient_of_parts = false;
  return can;
}

Capabilities with_fixed_order(Capabilities can) {
  can.deterministic = true;
  return can;
}

Capabilities with_float16(Capabilities can) {
  can.dtypes.push_back(DType::float16);
  return can;
}

Capabilities with_blocks(Capabilities can) {
  can.block_masks = true;
  return can;
}

Capabilities blocks_only(Capabilities can) {
  can.static_masks = false;
  return with_blocks(std::move(can));
}

Capabilities video_sparse(std::string name, std::string description) {
  Capabilities can =
      blocks_only(row(std::move(name), std::move(description), "fastvideo-kernel 0.3.5"));
  can.gqa = false;
  can.head_dims = {64, 128};
  return by_own_forward(std::move(can));
}

Capabilities sdpa(std::string name, std::string description) {
  Capabilities can = with_float16(row(std::move(name), std::move(description), "torch"));
  can.backward_bytes = kFlashBytes;
  can.group_gradients = GroupGradients::of_each_head;
  return can;
}

Capabilities fa2() {
  Capabilities can =
      with_float16(with_fixed_order(row("fa2", "FlashAttention 2 as PyTorch carries it", "torch")));
  can.backward_bytes = kFlashBytes;
  can.backward_bytes.document_rows = 128;  // with cu_seqlens each sequence has tiles of its own
  can.launches_longest_document = true;
  can.group_gradients = GroupGradients::of_each_head;
  return can;
}

Capabilities fa3() {
  Capabilities can = row("fa3", "FlashAttention 3", "flash_attn_interface or fa3-fwd");
  can.longest_first = LongestFirst::of_windows;
  return with_float16(on_hopper(std::move(can)));
}

Capabilities flex() {
  Capabilities can =
      with_float16(with_blocks(row("flex", "PyTorch's FlexAttention, compiled", "torch")));
  can.says_windows = false;  // its mask_mod for windows is that of intervals
  can.looks_up_uneven_blocks = true;
  can.backward_bytes = kFlexBytes;
  can.group_gradients = GroupGradients::of_group;
  return by_own_forward(std::move(can));
}

/// Without LSE: the kernel's row sums drift, and at 8K keys per query the LSE is off by 2e-5, more
/// than sums in float32 explain.
Capabilities vsa() {
  Capabilities can = on_hopper(
      video_sparse("vsa", "Video Sparse Attention for Hopper: 64-token blocks, without LSE"));
  can.returns_lse = false;
  return can;
}

Capabilities fa2_sparse() {
  Capabilities can = blocks_only(row(
      "fa2_sparse", "Block-Sparse-Attention on FlashAttention 2 (untried)", "block_sparse_attn"));
  can.head_dims = {32, 64, 128};
  return by_own_forward(std::move(can));
}

Capabilities fa1() {
  Capabilities can =
      with_float16(row("fa1", "FlashAttention 1: full and causal documents", "flash-attn 1.0.9"));
  can.gqa = false;
  can.head_dims = {32, 64, 128};
  return by_own_forward(std::move(can));
}

Capabilities fa4() {
  Capabilities can = with_float16(with_blocks(
      row("fa4", "FlashAttention 4: any static mask, block lists of 128 tokens", "flash-attn-4")));
  can.head_dims = {64, 96, 128, 192, 256};
  can.dim_pairs = {{192, 128}};
  can.deterministic = true;
  can.sinks = can.softcap = true;
  can.longest_first = LongestFirst::of_windows;
  can.tests_each_interval = true;
  can.group_gradients = GroupGradients::of_each_head;
  can.backward_bytes = {
      .per_q = 4, .per_row = 8, .grouped_per_k = 8, .document_rows = 64, .document_keys = 128};
  return on_hopper(std::move(can));
}

/// Its backward pass takes fewer shapes: cudnn_bsa.py.
Capabilities cudnn_bsa() {
  Capabilities can = blocks_only(
      row("cudnn_bsa", "Block-sparse attention of cudnn-frontend: 64- and 128-token blocks",
          "nvidia-cudnn-frontend 1.32"));
  can.head_dims = {64, 96, 128};
  return on_hopper(std::move(can));
}

}  // namespace

std::vector<PythonRow> python_rows() {
  const std::string torch = "PyTorch with CUDA (pip install torch)";
  const std::string fastvideo = "(pip install --no-deps fastvideo-kernel==0.3.5)";
  return {
      {sdpa("sdpa", "PyTorch's scaled_dot_product_attention by a fused back end"), torch,
       takes_full_and_causal},
      {sdpa("sdpa_mask", "the same, given any static mask as attn_mask"), torch},
      {fa2(), torch, takes_windows_and_documents},
      {flex(), "PyTorch with CUDA and Triton (pip install torch)", takes_flex_blocks},
      {fa1(), "PyTorch and flash-attn 1 (pip install flash-attn==1.0.9 --no-build-isolation)",
       takes_documents},
      {fa3(),
       "PyTorch and FlashAttention 3: flash_attn_interface from the hopper folder of its source, "
       "or its forward pass alone (pip install fa3-fwd)",
       takes_windows_and_documents},
      {fa4(), "PyTorch, flash-attn-4 and the CuTe DSL (pip install --pre flash-attn-4==4.0.0b36)",
       takes_whole_blocks_of<128>},
      {by_own_forward(on_hopper(
           row("ffa", "Flex-Flash-Attention: any slice mask (untried)", "magi_attention"))),
       "PyTorch and magi_attention, built from its source"},
      {by_own_forward(row("flashmask", "FlashMask: masked row intervals per key (untried)",
                          "paddlepaddle-gpu 3")),
       "PaddlePaddle 3 for GPUs (paddlepaddle-gpu from paddlepaddle.org.cn)",
       takes_column_intervals},
      {vsa(),
       "PyTorch and fastvideo-kernel, whose extension asks for NCCL 2.29 or later " + fastvideo,
       takes_blocks_of_64},
      {video_sparse("vsa_triton", "Video Sparse Attention in Triton: 64-token blocks"),
       "PyTorch, Triton and fastvideo-kernel " + fastvideo, takes_blocks_of_64},
      {cudnn_bsa(),
       "PyTorch, nvidia-cudnn-frontend and the CuTe DSL (pip install "
       "nvidia-cudnn-frontend==1.32.0)",
       takes_whole_blocks_of<64>},
      {fa2_sparse(),
       "PyTorch and block_sparse_attn (Block-Sparse-Attention, built from its source)",
       takes_blocks_of_128},
  };
}

}  // namespace longca
