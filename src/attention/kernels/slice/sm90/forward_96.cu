#include "attention/kernels/slice/sm90/forward_launch.cuh"

namespace longca::slice::sm90 {

bool dispatch_96(const ForwardParams& params, DType dtype, const DimPair& dims, bool pairs,
                 cudaStream_t stream) {
  if (!has_96(dtype, dims)) return false;
  return mma::instantiate_wide(dtype, [&]<typename Element>() {
    const auto launch_instance = [&]<int kCluster, bool kUnchecked>() {
      using Shape = ForwardShape<Element, HeadDims<96>, false, kCluster, false, false, kUnchecked>;
      launch<Shape>(params, dtype, dims, stream);
    };
    if constexpr (std::is_same_v<Element, __nv_bfloat16>) {
      if (params.lists.unchecked) {
        pairs ? launch_instance.template operator()<2, true>()
              : launch_instance.template operator()<1, true>();
        return;
      }
    }
    pairs ? launch_instance.template operator()<2, false>()
          : launch_instance.template operator()<1, false>();
  });
}

}  // namespace longca::slice::sm90
