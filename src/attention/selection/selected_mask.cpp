#include "attention/selection/selected_mask.h"

#include <utility>
#include <vector>

#include "attention/selection/select_blocks.h"
#include "core/device.h"
#ifdef LONGCA_WITH_CUDA
#include "attention/kernels/common/block_map.h"
#include "attention/selection/cuda/block_selector.h"
#include "mask/block_lists.h"
#endif

namespace longca {
namespace {

#ifdef LONGCA_WITH_CUDA
GeneratedMask selected_on_gpu(const MaskSpec& spec, const Problem& problem,
                              const ConstTensorView& q, const ConstTensorView& k) {
  Device& gpu = Device::get(DeviceKind::cuda);
  const BlockChoice choice = block_choice(spec);
  CudaBlockSelector selector(problem, choice);
  selector.run(q, k, gpu.stream());
  std::vector<std::uint32_t> words(static_cast<std::size_t>(selector.word_count()));
  if (!words.empty()) gpu.copy(words.data(), selector.words(), selector.word_count() * 4);
  GeneratedMask mask =
      mask_of_blocks(spec, lists_of_bits(choice.q_bounds, choice.k_bounds, choice.heads, words));
  BlockMap::adopt(mask.mask, selector.take_words());
  return mask;
}
#endif

}  // namespace

GeneratedMask selected_mask(const MaskSpec& spec, const Problem& problem, const ConstTensorView& q,
                            const ConstTensorView& k) {
#ifdef LONGCA_WITH_CUDA
  if (problem.device == DeviceKind::cuda) return selected_on_gpu(spec, problem, q, k);
#endif
  return mask_of_blocks(spec, select_blocks(problem, q, k, block_choice(spec)));
}

}  // namespace longca
