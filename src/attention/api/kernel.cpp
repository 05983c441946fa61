#include "attention/api/kernel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace longca {

namespace {

/// Unsupported, as a sentence that begins with the kernel's name: "cudnn needs a GPU of …"
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

/// Refuses as "has no head dimension 80, only 64, 128, 192:128".
Support check_dims(const Capabilities& c, const DimPair& dims) {
  if (dims.value_dim > dims.head_dim) {
    return refuse(c, fmt::format("takes no v of dimension {}, larger than {} of q and k",
                                 dims.value_dim, dims.head_dim));
  }
  const bool differ = dims.value_dim != dims.head_dim;
  if (differ && std::ranges::find(c.dim_pairs, dims) != c.dim_pairs.end()) return {};
  const bool is_known =
      c.head_dims.empty() || std::ranges::find(c.head_dims, dims.head_dim) != c.head_dims.end();
  if (is_known && (!differ || c.value_dims)) return {};
  std::vector<std::string> taken;
  for (const int dim : c.head_dims) taken.push_back(std::to_string(dim));
  for (const DimPair& pair : c.dim_pairs) taken.push_back(to_string(pair));
  const std::string others = c.more_dims.empty() ? "" : " (" + c.more_dims + ")";
  if (c.head_dims.empty()) {
    taken.insert(taken.begin(), "v of the same dimension as q and k");
    return refuse(c, fmt::format("takes no head dimensions {}, only {}{}", to_string(dims),
                                 fmt::join(taken, ", "), others));
  }
  return refuse(c, fmt::format("has no head dimension {}, only {}{}", to_string(dims),
                               fmt::join(taken, ", "), others));
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
  if (Support dims = check_dims(c, dims_of(p)); !dims.ok()) return dims;
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

bool can_merge_earlier(const Capabilities& c, const Problem& p) {
  const auto& dims = c.merges_earlier_dims;
  return std::ranges::find(dims, p.head_dim) != dims.end() && p.softcap == 0;
}

bool Kernel::merges_earlier(const Problem& problem) const {
  return can_merge_earlier(capabilities(), problem);
}

Support Kernel::can_express(const Problem& problem, const Mask& mask) const {
  return check_problem(capabilities(), problem, mask);
}

}  // namespace longca
