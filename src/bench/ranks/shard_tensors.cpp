#include "bench/ranks/shard_tensors.h"

#include <utility>

#include "attention/inputs/inputs.h"
#include "bench/cell/tensors.h"
#include "core/error.h"

namespace longca {
namespace {

/// [1, heads_q, 1] float32; nothing without sinks.
TensorView sink_shape(const Problem& whole, bool wanted) {
  const std::int64_t heads = wanted && whole.sink ? whole.heads_q : 0;
  return {nullptr, DType::float32, 1, heads, 1, heads, 1};
}

/// What a rank holds.
struct Shapes {
  RankTensors tensors;
  TensorView sink, dsink;
};

Shapes shapes(const Problem& whole, std::int64_t rows) {
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
  return {t, sink_shape(whole, true), sink_shape(whole, whole.backward)};
}

/// Calls visit(view, its offset) for each tensor and the lse, in one allocation of as many bytes as
/// it returns.
template <typename Visit>
std::int64_t lay_out(Shapes& shapes, const Visit& visit) {
  RankTensors& t = shapes.tensors;
  std::int64_t end = 0;
  for (TensorView* input : {&t.q, &t.k, &t.v, &t.dout, &shapes.sink}) {
    visit(*input, end);
    end += aligned(contiguous_bytes(*input));
  }
  const auto place_output = [&](auto& view) {
    const std::int64_t bytes = contiguous_bytes(view);
    if (bytes > 0) end = begin_behind_margin(end, bytes);
    visit(view, end);
    end += aligned(bytes);
  };
  for (TensorView* output : {&t.o, &t.dq, &t.dk, &t.dv, &shapes.dsink}) place_output(*output);
  place_output(t.lse);
  return end + kOutputMargin;
}

}  // namespace

std::int64_t shard_bytes(const Problem& whole, std::int64_t rows) {
  Shapes of_shard = shapes(whole, rows);
  return lay_out(of_shard, [](const auto&, std::int64_t) {});
}

ShardTensors::ShardTensors(const Problem& whole, const RankShard& shard, Communicator& communicator)
    : whole_(whole), device_(Device::get(whole.device)), tokens_(shard.tokens), margins_(device_) {
  Shapes placed = shapes(whole, shard.rows);
  auto* memory = static_cast<std::byte*>(communicator.allocate(shard_bytes(whole, shard.rows)));
  lay_out(placed, [&](auto& view, std::int64_t offset) {
    view.data = reinterpret_cast<decltype(view.data)>(memory + offset);
  });
  views_ = placed.tensors;
  if (placed.sink.heads > 0) sink_ = placed.sink;
  if (placed.dsink.heads > 0) dsink_ = placed.dsink;
  views_.sink = static_cast<const float*>(sink_.data);
  views_.dsink = static_cast<float*>(dsink_.data);
  const std::pair<const char*, const TensorView*> outputs[] = {
      {"o", &views_.o}, {"dq", &views_.dq}, {"dk", &views_.dk}, {"dv", &views_.dv}};
  for (const auto& [name, view] : outputs) margins_.add(name, view->data, contiguous_bytes(*view));
  margins_.add("dsink", dsink_.data, contiguous_bytes(dsink_));
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
  const Range all{0, 1};
  if (whole_.sink) draw_rows(whole_.device, sink_, seed, InputTensor::sink, {&all, 1});
}

void ShardTensors::poison_forward() const {
  poison(device_, {views_.o});
  poison(device_, views_.lse);
}

void ShardTensors::poison_backward() const {
  poison(device_, {views_.dq, views_.dk, views_.dv, dsink_});
}

std::uint64_t ShardTensors::input_fingerprint() const {
  return hash_values(device_, {views_.q, views_.k, views_.v, views_.dout, sink_});
}

}  // namespace longca
