#include "bench/ranks/gather_results.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/error.h"
#include "mask/mask_slice.h"
#include "mask/range.h"

namespace longca {
namespace {

/// One placement's values on the host, contiguous: [tokens, heads] rows of `row_bytes`, or for lse
/// [heads, tokens] values.
struct Packed {
  TensorRole role = TensorRole::o;
  Range heads;
  std::vector<Range> tokens;
  std::int64_t row_bytes = 0;
  HostBuffer data;

  std::int64_t count() const { return total_size(tokens); }
};

Packed pack(Device& device, const Executor& executor, const Placement& placement) {
  Packed packed{placement.role, placement.heads, placement.tokens, 4, {}};
  if (placement.role == TensorRole::lse) {
    const LseView lse = executor.lse_result(placement);
    const std::int64_t bytes = lse.tokens * 4;
    packed.data = HostBuffer(lse.heads * bytes);
    device.copy_rows(packed.data.data(), bytes, lse.data, lse.head_stride * 4, lse.heads, bytes);
  } else {
    const TensorView t = executor.result(placement);
    const std::int64_t size = size_of(t.dtype);
    packed.row_bytes = t.dim * size;
    const std::int64_t bytes = t.heads * packed.row_bytes;
    packed.data = HostBuffer(t.tokens * bytes);
    const auto copy = [&](std::int64_t head, std::int64_t row_bytes) {
      device.copy_rows(packed.data.as<std::byte>() + head * packed.row_bytes, bytes,
                       static_cast<const std::byte*>(t.data) + head * t.head_stride * size,
                       t.token_stride * size, t.tokens, row_bytes);
    };
    if (t.head_stride == t.dim) {
      copy(0, bytes);
    } else {
      for (std::int64_t head = 0; head < t.heads; ++head) copy(head, packed.row_bytes);
    }
  }
  LONGCA_CHECK(packed.data.bytes() == packed.count() * packed.heads.size() * packed.row_bytes,
               "{} of {} tokens and {} heads has {} bytes", to_string(packed.role), packed.count(),
               packed.heads.size(), packed.data.bytes());
  return packed;
}

void send(RankControl& control, const Packed& packed) {
  std::vector<std::int64_t> header{static_cast<std::int64_t>(packed.role), packed.heads.begin,
                                   packed.heads.end, packed.row_bytes};
  for (const Range& range : packed.tokens) {
    header.push_back(range.begin);
    header.push_back(range.end);
  }
  const auto words = static_cast<std::int64_t>(header.size());
  control.send(0, &words, sizeof(words));
  control.send(0, header.data(), words * 8);
  control.send(0, packed.data.data(), packed.data.bytes());
}

Packed receive(RankControl& control, int from) {
  std::int64_t words = 0;
  control.receive(from, &words, sizeof(words));
  std::vector<std::int64_t> header(static_cast<std::size_t>(words));
  control.receive(from, header.data(), words * 8);
  Packed packed{
      static_cast<TensorRole>(header.at(0)), {header.at(1), header.at(2)}, {}, header.at(3), {}};
  for (std::size_t i = 4; i < header.size(); i += 2) {
    packed.tokens.push_back({header[i], header[i + 1]});
  }
  packed.data = HostBuffer(packed.count() * packed.heads.size() * packed.row_bytes);
  control.receive(from, packed.data.data(), packed.data.bytes());
  return packed;
}

/// Some heads of a tensor of the whole problem, staged on the host until all ranks' parts have
/// arrived. A row holds these heads of one token, or for lse all tokens of one head.
class WholeHeads {
 public:
  WholeHeads(Device& device, const Outputs& outputs, TensorRole role, Range heads)
      : device_(device), role_(role), heads_(heads) {
    if (role == TensorRole::lse) {
      const LseView lse = outputs.lse.view();
      element_bytes_ = 4;
      data_ = lse.head(static_cast<int>(heads.begin));
      stride_ = lse.head_stride * 4;
      rows_ = heads.size();
      row_bytes_ = lse.tokens * 4;
    } else {
      const TensorView& t = tensor_of(outputs, role).view();
      const std::int64_t size = size_of(t.dtype);
      element_bytes_ = t.dim * size;
      data_ = static_cast<std::byte*>(t.data) + heads.begin * t.head_stride * size;
      stride_ = t.token_stride * size;
      rows_ = t.tokens;
      row_bytes_ = heads.size() * element_bytes_;
    }
    stage();
  }

  /// Copies a rank's part to its place.
  void take(const Packed& part) {
    LONGCA_CHECK(part.row_bytes == element_bytes_, "rows of {} bytes in {} of {}", part.row_bytes,
                 to_string(role_), element_bytes_);
    const auto* from = part.data.as<std::byte>();
    const std::int64_t first = part.heads.begin - heads_.begin;
    if (role_ == TensorRole::lse) {
      for (std::int64_t head = first; head < first + part.heads.size(); ++head) {
        for (const Range& range : part.tokens) {
          from = put(host_ + head * host_stride_ + range.begin * 4, from, range.size() * 4);
        }
      }
      return;
    }
    for (const Range& range : part.tokens) {
      for (std::int64_t token = range.begin; token < range.end; ++token) {
        from = put(host_ + token * host_stride_ + first * element_bytes_, from,
                   part.heads.size() * element_bytes_);
      }
    }
  }

  /// Copies the staged rows to the device.
  void finish() const {
    if (host_ != data_) device_.copy_rows(data_, stride_, host_, host_stride_, rows_, row_bytes_);
  }

 private:
  static const OutputTensor& tensor_of(const Outputs& outputs, TensorRole role) {
    switch (role) {
      case TensorRole::o:
        return outputs.o;
      case TensorRole::dq:
        return outputs.dq;
      case TensorRole::dk:
        return outputs.dk;
      case TensorRole::dv:
        return outputs.dv;
      default:
        throw_internal_error(__FILE__, __LINE__, "role", "no result");
    }
  }

  /// On a GPU copies the rows to the host; on the CPU they are used in place.
  void stage() {
    host_ = static_cast<std::byte*>(data_);
    host_stride_ = stride_;
    if (&device_ == &Device::get(DeviceKind::cpu)) return;
    staging_ = HostBuffer(rows_ * row_bytes_);
    host_ = staging_.as<std::byte>();
    host_stride_ = row_bytes_;
    // Elements that no rank has a result for keep their values.
    device_.copy_rows(host_, host_stride_, data_, stride_, rows_, row_bytes_);
  }

  static const std::byte* put(std::byte* to, const std::byte* from, std::int64_t bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return from + bytes;
  }

  Device& device_;
  TensorRole role_;
  Range heads_;
  std::int64_t element_bytes_ = 0;  ///< of one token and head
  void* data_ = nullptr;
  std::int64_t stride_ = 0, rows_ = 0, row_bytes_ = 0;
  std::byte* host_ = nullptr;
  std::int64_t host_stride_ = 0;
  HostBuffer staging_;
};

/// This rank's results of a role, restricted to these heads.
std::vector<Placement> placements(const RankPlan& plan, TensorRole role, Range heads) {
  std::vector<Placement> found;
  for (Placement placement : plan.results) {
    const Range own = intersect(placement.heads, heads);
    if (placement.role != role || own.size() <= 0) continue;
    const std::int64_t first = placement.region.heads.begin - placement.heads.begin;
    placement.region.heads = {first + own.begin, first + own.end};
    placement.heads = own;
    found.push_back(std::move(placement));
  }
  return found;
}

void gather_heads(RankControl& control, Device& device, const RankPlan& plan,
                  const Executor& executor, TensorRole role, Range heads, const Outputs* whole) {
  const auto own = placements(plan, role, heads);
  const std::vector<double> counts = control.gather(static_cast<double>(own.size()));
  if (control.rank() != 0) {
    for (const Placement& placement : own) send(control, pack(device, executor, placement));
    return;
  }
  WholeHeads tensor(device, *whole, role, heads);
  for (const Placement& placement : own) tensor.take(pack(device, executor, placement));
  for (int from = 1; from < control.size(); ++from) {
    const auto count = static_cast<int>(counts[static_cast<std::size_t>(from)]);
    for (int i = 0; i < count; ++i) tensor.take(receive(control, from));
  }
  tensor.finish();
}

}  // namespace

void gather_results(RankControl& control, Device& device, const RankPlan& plan,
                    const Executor& executor, std::span<const TensorRole> roles,
                    const CheckedHeads& heads, const Outputs* whole) {
  for (const TensorRole role : roles) {
    const bool of_keys = role == TensorRole::dk || role == TensorRole::dv;
    for (const Range& range : of_keys ? heads.k : heads.q) {
      gather_heads(control, device, plan, executor, role, range, whole);
    }
  }
}

void gather_sink_gradients(RankControl& control, Device& device, const TensorView& part,
                           const Outputs* whole) {
  std::vector<float> values(static_cast<std::size_t>(part.heads));
  const std::int64_t bytes = std::ssize(values) * 4;
  device.copy(values.data(), part.data, bytes);
  if (control.rank() != 0) return control.send(0, values.data(), bytes);
  std::vector<double> sums(values.begin(), values.end());
  for (int from = 1; from < control.size(); ++from) {
    control.receive(from, values.data(), bytes);
    for (std::size_t head = 0; head < sums.size(); ++head) {
      sums[head] += static_cast<double>(values[head]);
    }
  }
  std::ranges::transform(sums, values.begin(), [](double sum) { return static_cast<float>(sum); });
  device.copy(whole->dsink.view().data, values.data(), bytes);
}

CheckedHeads broadcast(RankControl& control, const CheckedHeads& heads) {
  const auto write = [](const std::vector<Range>& ranges) {
    auto list = nlohmann::json::array();
    for (const Range& range : ranges) list.push_back({range.begin, range.end});
    return list;
  };
  const auto read = [](const nlohmann::json& list) {
    std::vector<Range> ranges;
    for (const auto& range : list) ranges.push_back({range.at(0), range.at(1)});
    return ranges;
  };
  const std::string text =
      control.broadcast(nlohmann::json::array({write(heads.q), write(heads.k)}).dump());
  const nlohmann::json both = nlohmann::json::parse(text);
  return {read(both.at(0)), read(both.at(1))};
}

}  // namespace longca
