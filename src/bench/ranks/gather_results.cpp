#include "bench/ranks/gather_results.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "core/error.h"
#include "mask/total_size.h"

namespace longca {
namespace {

/// One placement's values on the host, without gaps: [tokens, heads] rows of `row_bytes`, or for
/// lse [heads, tokens] values.
struct Packed {
  TensorRole role = TensorRole::o;
  Range heads;
  std::vector<Range> tokens;
  std::int64_t row_bytes = 0;
  HostBuffer data;

  std::int64_t count() const { return total_size(tokens); }
};

/// A rectangle of rows in host or device memory, as pieces of `piece_bytes`.
struct Rectangle {
  const void* data = nullptr;
  std::int64_t outer = 0, outer_stride = 0;  ///< strides in bytes
  std::int64_t inner = 0, inner_stride = 0;
  std::int64_t piece_bytes = 0;
};

/// Its pieces one after the other. What lies between the first and the last is copied to the host
/// at once.
HostBuffer pack(Device& device, const Rectangle& r) {
  HostBuffer packed(r.outer * r.inner * r.piece_bytes);
  if (packed.bytes() == 0) return packed;
  const std::int64_t span =
      (r.outer - 1) * r.outer_stride + (r.inner - 1) * r.inner_stride + r.piece_bytes;
  if (span == packed.bytes()) {
    device.copy(packed.data(), r.data, span);
    return packed;
  }
  const HostBuffer all(span);
  device.copy(all.data(), r.data, span);
  auto* to = packed.as<std::byte>();
  for (std::int64_t i = 0; i < r.outer; ++i) {
    for (std::int64_t j = 0; j < r.inner; ++j, to += r.piece_bytes) {
      std::memcpy(to, all.as<std::byte>() + i * r.outer_stride + j * r.inner_stride,
                  static_cast<std::size_t>(r.piece_bytes));
    }
  }
  return packed;
}

Packed pack(Device& device, const Executor& executor, const Placement& placement) {
  Packed packed{placement.role, placement.heads, placement.tokens, 4, {}};
  if (placement.role == TensorRole::lse) {
    const LseView lse = executor.lse_result(placement);
    packed.data = pack(device, {lse.data, lse.heads, lse.head_stride * 4, lse.tokens, 4, 4});
  } else {
    const TensorView t = executor.result(placement);
    const std::int64_t size = size_of(t.dtype);
    packed.row_bytes = t.dim * size;
    packed.data = pack(device, {t.data, t.tokens, t.token_stride * size, t.heads,
                                t.head_stride * size, packed.row_bytes});
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

/// One tensor of the whole problem, on the host until all ranks' parts are in it.
class Whole {
 public:
  Whole(Device& device, const Outputs& outputs, TensorRole role) : device_(device), role_(role) {
    if (role == TensorRole::lse) {
      const LseView lse = outputs.lse.view();
      set(lse.data, lse.tokens, lse.heads, 4);
    } else {
      const Tensor& tensor = tensor_of(outputs, role);
      const TensorView& t = tensor.view();
      set(t.data, t.tokens, t.heads, t.dim * size_of(t.dtype));
    }
  }

  void take(const Packed& part) {
    LONGCA_CHECK(part.row_bytes == row_bytes_, "rows of {} bytes in {} of {}", part.row_bytes,
                 to_string(role_), row_bytes_);
    const auto* from = part.data.as<std::byte>();
    auto* to = static_cast<std::byte*>(host_);
    if (role_ == TensorRole::lse) {
      for (std::int64_t head = part.heads.begin; head < part.heads.end; ++head) {
        for (const Range& range : part.tokens) {
          from = put(to + (head * tokens_ + range.begin) * 4, from, range.size() * 4);
        }
      }
      return;
    }
    for (const Range& range : part.tokens) {
      for (std::int64_t token = range.begin; token < range.end; ++token) {
        from = put(to + (token * heads_ + part.heads.begin) * row_bytes_, from,
                   part.heads.size() * row_bytes_);
      }
    }
  }

  void finish() const {
    if (host_ != data_) device_.copy(data_, host_, staging_.bytes());
  }

 private:
  static const Tensor& tensor_of(const Outputs& outputs, TensorRole role) {
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

  void set(void* data, std::int64_t tokens, std::int64_t heads, std::int64_t row_bytes) {
    data_ = host_ = data;
    tokens_ = tokens;
    heads_ = heads;
    row_bytes_ = row_bytes;
    if (&device_ == &Device::get(DeviceKind::cpu)) return;
    staging_ = HostBuffer(tokens * heads * row_bytes);
    host_ = staging_.data();
    device_.copy(host_, data_, staging_.bytes());  // what is there stays where nobody has a result
  }

  static const std::byte* put(std::byte* to, const std::byte* from, std::int64_t bytes) {
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
    return from + bytes;
  }

  Device& device_;
  TensorRole role_;
  void* data_ = nullptr;
  void* host_ = nullptr;
  std::int64_t tokens_ = 0, heads_ = 0, row_bytes_ = 0;
  HostBuffer staging_;
};

std::vector<const Placement*> placements(const RankPlan& plan, TensorRole role) {
  std::vector<const Placement*> found;
  for (const Placement& placement : plan.results) {
    if (placement.role == role) found.push_back(&placement);
  }
  return found;
}

}  // namespace

bool has_result(const RankPlan& plan, TensorRole role) {
  return !placements(plan, role).empty();
}

void gather_results(RankControl& control, Device& device, const RankPlan& plan,
                    const Executor& executor, std::span<const TensorRole> roles,
                    const Outputs* whole) {
  for (const TensorRole role : roles) {
    const auto own = placements(plan, role);
    const std::vector<double> counts = control.gather(static_cast<double>(own.size()));
    if (control.rank() != 0) {
      for (const Placement* placement : own) send(control, pack(device, executor, *placement));
      continue;
    }
    Whole tensor(device, *whole, role);
    for (const Placement* placement : own) tensor.take(pack(device, executor, *placement));
    for (int from = 1; from < control.size(); ++from) {
      const auto count = static_cast<int>(counts[static_cast<std::size_t>(from)]);
      for (int i = 0; i < count; ++i) tensor.take(receive(control, from));
    }
    tensor.finish();
  }
}

}  // namespace longca
