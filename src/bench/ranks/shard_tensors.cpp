#include "bench/ranks/shard_tensors.h"

#include <utility>

#include "attention/inputs/inputs.h"
#include "bench/cell/tensors.h"
#include "core/error.h"

namespace longca {
namespace {

RankTensors shapes(const Problem& whole, std::int64_t rows) {
  const auto tensor = [&](int heads) {
    const std::int64_t dim = whole.head_dim;
    return TensorView{nullptr, whole.dtype, rows, heads, dim, heads * dim, dim};
  };
  RankTensors t;
  t.q = t.dout = t.o = tensor(whole.heads_q);
  t.k = t.v = tensor(whole.heads_k);
  t.lse = {nullptr, whole.heads_q, rows, rows};
  if (whole.backward) {
    t.dq = t.q;
    t.dk = t.dv = t.k;
  }
  return t;
}

/// Calls visit(view) for each tensor and the lse.
template <typename Visit>
void for_all(RankTensors& t, const Visit& visit) {
  for (TensorView* view : {&t.q, &t.k, &t.v, &t.dout, &t.o, &t.dq, &t.dk, &t.dv}) visit(*view);
  visit(t.lse);
}

}  // namespace

std::int64_t shard_bytes(const Problem& whole, std::int64_t rows) {
  RankTensors views = shapes(whole, rows);
  std::int64_t bytes = 0;
  for_all(views, [&](const auto& view) { bytes += aligned(contiguous_bytes(view)); });
  return bytes;
}

ShardTensors::ShardTensors(const Problem& whole, const RankShard& shard, Communicator& communicator)
    : whole_(whole),
      device_(Device::get(whole.device)),
      tokens_(shard.tokens),
      views_(shapes(whole, shard.rows)) {
  auto* memory = static_cast<std::byte*>(communicator.allocate(shard_bytes(whole, shard.rows)));
  for_all(views_, [&](auto& view) {
    view.data = reinterpret_cast<decltype(view.data)>(memory);
    memory += aligned(contiguous_bytes(view));
  });
}

void ShardTensors::draw(std::uint64_t seed, InputStyle style,
                        std::span<const std::int64_t> documents) {
  const InputLaw law = input_law(whole_, style, documents);
  draw_rows(whole_.device, views_.q, seed, InputTensor::q, tokens_, law);
  draw_rows(whole_.device, views_.k, seed, InputTensor::k, tokens_, law);
  draw_rows(whole_.device, views_.v, seed, InputTensor::v, tokens_);
  draw_rows(whole_.device, views_.dout, seed, InputTensor::dout, tokens_);
}

void ShardTensors::poison_forward() const {
  poison(device_, {views_.o});
  poison(device_, views_.lse);
}

void ShardTensors::poison_backward() const {
  poison(device_, {views_.dq, views_.dk, views_.dv});
}

std::uint64_t ShardTensors::input_fingerprint() const {
  return hash_values(device_, {views_.q, views_.k, views_.v, views_.dout});
}

}  // namespace longca
