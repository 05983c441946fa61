#include "attention/adapters/flashinfer/flashinfer.h"

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "attention/adapters/flashinfer/launch.h"
#include "attention/adapters/flashinfer/pages.h"
#include "attention/kernels/common/block_map.h"
#include "core/cuda/upload.h"
#include "core/device.h"
#include "core/error.h"

namespace longca {
namespace flashinfer {
namespace {

Device& gpu() {
  return Device::get(DeviceKind::cuda);
}

class FlashinferPlan final : public Plan {
 public:
  FlashinferPlan(const Problem& problem, const Mask& mask)
      : problem_(problem), page_size_(page_size(*mask.blocks())) {
    const BlockLists& blocks = *mask.blocks();
    const WorkList work = assign_work(blocks, problem.heads_q, kTileQ, gpu().properties().sms);
    for (const auto* part : {&work.work_begin, &work.tile, &work.head, &work.q_begin, &work.q_size,
                             &work.first, &work.keys}) {
      work_.push_back(on_device(*part));
    }
    auto* stream = static_cast<cudaStream_t>(gpu().stream());
    DeviceBlockLists lists = kept_lists(BlockMap::of(mask), stream);
    if (page_size_ == 1) {
      pages_ = list_keys(blocks, mask, lists, stream);
    } else {
      pages_ = std::move(lists.indices_buffer);
    }
    row_lse_ = Buffer(gpu().memory(), problem.tokens_q * problem.heads_q * 4);
  }

  void forward(const ForwardArgs& args) override {
    LONGCA_CHECK(!args.accumulate, "flashinfer cannot merge into given outputs");
    auto* stream = static_cast<cudaStream_t>(args.stream);
    launch_forward({args.q, args.k, args.v, args.o, row_lse_.as<float>(), problem_.scale(),
                    device_work(), pages_.as<std::int32_t>(), page_size_},
                   stream);
    launch_transpose_lse(row_lse_.as<float>(), args.lse, stream);
  }

  void backward(const BackwardArgs& /*args*/) override {
    LONGCA_CHECK(false, "flashinfer has no backward pass");
  }

  std::int64_t workspace_bytes() const override {
    std::int64_t bytes = pages_.bytes() + row_lse_.bytes();
    for (const Buffer& part : work_) bytes += part.bytes();
    return bytes;
  }

  std::map<std::string, std::string> notes() const override {
    return {{"pages", fmt::format("of {} keys, in tiles of {} queries", page_size_, kTileQ)}};
  }

 private:
  static Buffer list_keys(const BlockLists& blocks, const Mask& mask, const DeviceBlockLists& lists,
                          cudaStream_t stream) {
    std::vector<std::int64_t> first;
    for (const PageRow& row : page_rows(blocks)) first.push_back(row.first);
    const Buffer first_on_device = on_device(first);
    Buffer pages(gpu().memory(), page_entries(blocks) * 4);
    launch_list_keys({lists.offsets(), lists.indices(), BlockMap::of(mask).k_bounds(),
                      first_on_device.as<std::int64_t>(), static_cast<std::int64_t>(first.size())},
                     pages.as<std::int32_t>(), stream);
    gpu().synchronize();  // before its inputs are freed
    return pages;
  }

  DeviceWork device_work() const {
    const auto part = [&](std::size_t i) { return work_[i].as<std::int32_t>(); };
    return {part(0), part(1), part(2), part(3), part(4), part(5), part(6)};
  }

  Problem problem_;
  std::int64_t page_size_;
  std::vector<Buffer> work_;  ///< in the order of DeviceWork
  Buffer pages_;
  Buffer row_lse_;
};

class Flashinfer final : public Kernel {
 public:
  const Capabilities& capabilities() const override { return capabilities_; }

  Support supports(const Problem& problem, const Mask& mask) const override {
    if (Support support = check_capabilities(capabilities_, problem, mask); !support.ok()) {
      return support;
    }
    return can_express(problem, mask);
  }

  Support can_express(const Problem& problem, const Mask& mask) const override {
    return flashinfer_can_express(problem, mask);
  }

  std::unique_ptr<Plan> plan(const Problem& problem, const Mask& mask) const override {
    return std::make_unique<FlashinferPlan>(problem, mask);
  }

  std::string version() const override { return LONGCA_FLASHINFER_VERSION; }

 private:
  Capabilities capabilities_ = flashinfer_capabilities();
};

}  // namespace
}  // namespace flashinfer

std::unique_ptr<Kernel> make_flashinfer() {
  return std::make_unique<flashinfer::Flashinfer>();
}

}  // namespace longca
