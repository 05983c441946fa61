#pragma once

#include <cstdint>
#include <memory>

#include "attention/adapters/cudnn/form.h"
#include "attention/api/kernel.h"
#include "core/device.h"
#include "core/memory.h"

namespace longca {

/// cuDNN's graphs of one problem, through its C++ frontend. The one place that includes it.
class CudnnGraphs {
 public:
  /// What cuDNN itself says of the problem, in its words; ok if it has an engine for it.
  static Support check(const Problem& problem, const CudnnForm& form);

  /// Builds the graph of the forward pass, and of the backward pass if the problem has one; the
  /// lengths and offsets of sequences go to the device. Throws std::runtime_error
  /// with cuDNN's sentence.
  CudnnGraphs(const Problem& problem, const CudnnForm& form);
  ~CudnnGraphs();
  CudnnGraphs(const CudnnGraphs&) = delete;
  CudnnGraphs& operator=(const CudnnGraphs&) = delete;

  void forward(const ForwardArgs& args);
  void backward(const BackwardArgs& args);
  std::int64_t workspace_bytes() const;
  PlanScratch& scratch() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace longca
