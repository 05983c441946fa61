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

/// Calls visit(view, its offset) for each tensor and the lse, in one allocation of as many bytes as
/// it returns.
template <typename Visit>
std::int64_t lay_out(RankTensors& t, const Visit& visit) {
  std::int64_t end = 0;
  for (TensorView* input : {&t.q, &t.k, &t.v, &t.dout}) {
    visit(*input, end);
    end += aligned(contiguous_bytes(*input));
  }
  const auto place_output = [&](auto& view) {
    const std::int64_t bytes = contiguous_bytes(view);
    if (bytes > 0) end = begin_behind_margin(end, bytes);
    visit(view, end);
    end += aligned(bytes);
  };
  for (TensorView* output : {&t.o, &t.dq, &t.dk, &t.dv}) place_output(*output);
  place_output(t.lse);
  return end + kOutputMargin;
}

}  // namespace

std::int64_t shard_bytes(const Problem& whole, std::int64_t rows) {
  RankTensors views = shapes(whole, rows);
  return lay_out(views, [](const auto&, std::int64_t) {});
}

ShardTensors::ShardTensors(const Problem& whole, const RankShard& shard, Communicator& communicator)
    : whole_(whole),
      device_(Device::get(whole.device)),
      tokens_(shard.tokens),
      views_(shapes(whole, shard.rows)),
      margins_(device_) {
  auto* memory = static_cast<std::byte*>(communicator.allocate(shard_bytes(whole, shard.rows)));
  lay_out(views_, [&](auto& view, std::int64_t offset) {
    view.data = reinterpret_cast<decltype(view.data)>(memory + offset);
  });
  const std::pair<const char*, const TensorView*> outputs[] = {
      {"o", &views_.o}, {"dq", &views_.dq}, {"dk", &views_.dk}, {"dv", &views_.dv}};
  for (const auto& [name, view] : outputs) margins_.add(name, view->data, contiguous_bytes(*view));
  margins_.add("lse", views_.lse.data, contiguous_bytes(views_.lse));
  margins_.fill();
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
