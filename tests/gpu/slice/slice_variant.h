#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "attention/api/problem.h"
#include "attention/kernels/slice/slice.h"
#include "core/device.h"

namespace longca::testing {

/// Kernels of slice that have code of their own: a path and head dimensions.
struct SliceVariant {
  SlicePath path = SlicePath::sm90;
  DimPair dims = {128, 128};

  /// Why they do not run on this GPU, or nothing.
  std::string refusal() const {
    const DeviceProperties& gpu = Device::get(DeviceKind::cuda).properties();
    if (path != SlicePath::sm90 || gpu.architecture == 90) return {};
    return "the " + gpu.name + " is not of compute capability 9.0";
  }
  Problem of_dims(Problem problem) const {
    problem.head_dim = dims.head_dim;
    problem.head_dim_v = dims.value_dim == dims.head_dim ? 0 : dims.value_dim;
    return problem;
  }
};

/// Those of this build.
inline std::vector<SliceVariant> slice_variants() {
  std::vector<SliceVariant> variants = {{SlicePath::sm90}, {SlicePath::sm80}};
  const Capabilities can = slice_capabilities();
  for (const DimPair& pair : can.dim_pairs) variants.push_back({SlicePath::sm90, pair});
  for (const int dim : can.head_dims) {
    if (dim != 128) variants.push_back({SlicePath::sm90, {dim, dim}});
  }
  return variants;
}

inline std::string variant_name(const ::testing::TestParamInfo<SliceVariant>& info) {
  std::string name = info.param.path == SlicePath::sm90 ? "sm90" : "sm80";
  const DimPair& dims = info.param.dims;
  if (dims.head_dim != 128) name += "_" + std::to_string(dims.head_dim);
  if (dims.head_dim != dims.value_dim) name += "_" + std::to_string(dims.value_dim);
  return name;
}

}  // namespace longca::testing
