#pragma once

#include <cstdint>

#include "attention/api/kernel.h"
#include "attention/api/problem.h"
#include "core/tensor.h"
#include "longca.h"
#include "mask/mask.h"
#include "parallel/plan/plan.h"

namespace longca::capi {

/// Throws InputError unless a number of heads or of dimensions is from 1 to 2^20.
void check_count(std::int64_t value, const char* name);

/// Throws InputError unless `rank` is one of `ranks`, of which there are at most kMaxRunningRanks.
void check_rank(std::int64_t rank, std::int64_t ranks);

/// The caller's problem, with the defaults of members that his header does not know. Throws
/// InputError for a pointer to none.
longca_problem known_problem(const longca_problem* problem);

/// The shape of an attention under `mask`. Throws InputError that names the member, its value and
/// the limit.
Problem to_problem(const longca_problem& given, const Mask& mask);

/// The kernel that the caller names, or the one for the device and mask. Throws InputError for an
/// unknown name, Refusal with the kernel's own sentence if it does not take the problem.
const Kernel& find_kernel(const longca_problem& given, const Problem& problem, const Mask& mask);

struct TensorShape {
  std::int64_t tokens, heads, dim;
};
/// Of any role but lse.
TensorShape shape_of(TensorRole role, const Problem& problem);

/// A tensor of a call. Throws InputError that names it unless it has the shape of its role.
TensorView view_of(const longca_tensor& tensor, TensorRole role, const Problem& problem);
/// One that the call writes: no two of its rows may share an element.
TensorView written_view_of(const longca_tensor& tensor, TensorRole role, const Problem& problem);

}  // namespace longca::capi
