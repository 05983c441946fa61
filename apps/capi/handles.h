#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "attention/api/kernel.h"
#include "longca.h"
#include "mask/mask.h"
#include "parallel/executor/lanes.h"

/// What the handles of longca.h stand for.
struct longca_mask {
  longca::Mask mask;
  std::vector<std::int64_t> documents;  ///< lengths that it was drawn with
};

struct longca_plan {
  longca_plan(longca::Mask m, const longca::Problem& p, const longca::Kernel& k)
      : mask(std::move(m)), problem(p), kernel(&k) {}

  longca::Mask mask;
  longca::Problem problem;
  const longca::Kernel* kernel;
  std::unique_ptr<longca::Plan> plan;
  std::mutex calls;  ///< a plan runs one call at a time
  /// The end of the last call in its stream; null on the CPU, where a call has ended.
  std::unique_ptr<longca::StreamMark> mark;
};

namespace longca::capi {

inline std::unique_ptr<longca_mask> make_mask(Mask mask, std::vector<std::int64_t> documents = {}) {
  return std::unique_ptr<longca_mask>(new longca_mask{std::move(mask), std::move(documents)});
}

}  // namespace longca::capi
