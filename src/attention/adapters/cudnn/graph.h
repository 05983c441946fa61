#pragma once

#include <cstdint>
#include <memory>

#include "attention/adapters/cudnn/form.h"
#include "attention/api/kernel.h"
#include "core/device.h"
#include "core/memory.h"

namespace longca {

/// cuDNN's graphs for one problem, by its C++ frontend.
class CudnnGraphs {
 public:
  /// ok if cuDNN has an engine for the problem, else its own message.
  static Support check(const Problem& problem, const CudnnForm& form);

  /// Builds the graphs of the problem's passes and copies lengths and offsets of sequences to the
  /// device. Throws std::runtime_error with cuDNN's message.
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
