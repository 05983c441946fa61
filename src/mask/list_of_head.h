#pragma once

#include <concepts>
#include <type_traits>

#ifdef __CUDACC__
#define LONGCA_LISTS_HOST_DEVICE __host__ __device__
#else
#define LONGCA_LISTS_HOST_DEVICE
#endif

namespace longca {

/// Which of a mask's `lists` (Mask::heads()) query head `head` of `heads_q` reads: neighbouring
/// heads share one. The operands' common type has to hold head · lists.
template <std::integral Head, std::integral Lists>
LONGCA_LISTS_HOST_DEVICE constexpr auto list_of_head(Head head, Lists lists, int heads_q) {
  using Common = std::common_type_t<Head, Lists>;
  return static_cast<Common>(static_cast<Common>(head) * static_cast<Common>(lists) /
                             static_cast<Common>(heads_q));
}

}  // namespace longca

#undef LONGCA_LISTS_HOST_DEVICE
