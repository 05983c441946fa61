#include "attention/api/kernel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace longca {

namespace {

/// "cudnn needs a GPU of …"
Support refuse(const Capabilities& c, std::string reason) {
  return Support::unsupported(c.name + " " + std::move(reason));
}

Support check_device(const Capabilities& c) {
  if (const Support& device = Device::available(c.device); !device.ok()) return device;
  if (c.device != DeviceKind::cuda) return {};
  const DeviceProperties& gpu = Device::get(c.device).properties();
  if (gpu.architecture < c.min_architecture) {
    return refuse(c,
                  fmt::format("needs a GPU of compute capability {}.{} or later, the {} has {}.{}",
                              c.min_architecture / 10, c.min_architecture % 10, gpu.name,
                              gpu.architecture / 10, gpu.architecture % 10));
  }
  if (c.only_architecture != 0 && gpu.architecture != c.only_architecture) {
    return refuse(c, fmt::format("is written for compute capability {}.{}, the {} has {}.{}",
                                 c.only_architecture / 10, c.only_architecture % 10, gpu.name,
                                 gpu.architecture / 10, gpu.architecture % 10));
  }
  return {};
}

}  // namespace

Support check_kind(const Capabilities& c, DeviceKind device) {
  if (device == c.device) return {};
  return refuse(c, fmt::format("runs on {}, not on {}", to_string(c.device), to_string(device)));
}

Support check_capabilities(const Capabilities& c, const Problem& p, const Mask& mask) {
  if (auto kind = check_kind(c, p.device); !kind.ok()) return kind;
  if (auto device = check_device(c); !device.ok()) return device;
  return check_problem(c, p, mask);
}

Support check_problem(const Capabilities& c, const Problem& p, const Mask& mask) {
  const auto no = [&](std::string reason) { return refuse(c, std::move(reason)); };
  if (std::ranges::find(c.dtypes, p.dtype) == c.dtypes.end()) {
    std::vector<std::string_view> names;
    for (const DType dtype : c.dtypes) names.push_back(to_string(dtype));
    return no(fmt::format("has no {}, only {}", to_string(p.dtype), fmt::join(names, ", ")));
  }
  if (!c.head_dims.empty() && std::ranges::find(c.head_dims, p.head_dim) == c.head_dims.end()) {
    return no(
        fmt::format("has no head dimension {}, only {}", p.head_dim, fmt::join(c.head_dims, ", ")));
  }
  if (!c.gqa && p.heads_q != p.heads_k) {
    return no(
        fmt::format("needs as many KV heads as query heads, not {}:{}", p.heads_q, p.heads_k));
  }
  if (!c.static_masks && mask.blocks() == nullptr) return no("takes block-sparse masks only");
  if (!c.block_masks && mask.blocks() != nullptr) return no("takes no block-sparse mask");
  if (!c.backward && p.backward) return no("has no backward pass");
  if (!c.accumulate && p.accumulate) return no("cannot merge into given outputs");
  if (!c.deterministic && p.deterministic) {
    return no("has no backward pass that gives the same bits from call to call");
  }
  if (!c.sinks && p.sink) return no("has no sinks in the softmax");
  if (!c.softcap && p.softcap > 0) {
    return no(fmt::format("does not cap scores, so not at {}", p.softcap));
  }
  return {};
}

Support Kernel::can_express(const Problem& problem, const Mask& mask) const {
  return check_problem(capabilities(), problem, mask);
}

}  // namespace longca
