// That nccl_interface.h declares what nccl.h does, where that header is there to compare with.
#include "parallel/transport/nccl/nccl_interface.h"

#if __has_include(<nccl.h>)
#include <nccl.h>

namespace longca::nccl {

static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId));
static_assert(sizeof(Comm) == sizeof(ncclComm_t));
static_assert(sizeof(Result) == sizeof(ncclResult_t));
static_assert(sizeof(int) == sizeof(ncclDataType_t) && sizeof(int) == sizeof(ncclRedOp_t));
static_assert(kSuccess == static_cast<int>(ncclSuccess));
static_assert(kInt8 == static_cast<int>(ncclInt8));
static_assert(kFloat32 == static_cast<int>(ncclFloat32));
static_assert(kSum == static_cast<int>(ncclSum));

}  // namespace longca::nccl
#endif
