#include "bench/cell/tensors.h"

#include <cstddef>
#include <vector>

namespace longca {
namespace {

/// Appends the memory of an lse: of all heads, or where there are gaps between them of each head.
void add_parts(const LseView& lse, std::vector<std::span<std::byte>>& parts) {
  const bool has_gaps = lse.heads > 1 && lse.head_stride != lse.tokens;
  const std::int64_t pieces = has_gaps ? lse.heads : 1;
  const std::int64_t bytes = contiguous_bytes(lse) / pieces;
  for (std::int64_t i = 0; i < pieces; ++i) {
    parts.emplace_back(reinterpret_cast<std::byte*>(lse.head(i)), static_cast<std::size_t>(bytes));
  }
}

std::vector<std::span<std::byte>> writable_results(const PassTensors& t, Pass pass) {
  std::vector<std::span<std::byte>> parts;
  const auto add = [&](const TensorView& x) {
    if (x.data == nullptr) return;
    parts.emplace_back(static_cast<std::byte*>(x.data),
                       static_cast<std::size_t>(contiguous_bytes(x)));
  };
  if (pass != Pass::backward) {
    add(t.o);
    for (const LseView& lse : t.lse) add_parts(lse, parts);
  }
  if (pass == Pass::forward) return parts;
  for (const TensorView& x : {t.dq, t.dk, t.dv, t.dsink}) add(x);
  return parts;
}

}  // namespace

std::int64_t contiguous_bytes(const TensorView& t) {
  return t.tokens * t.heads * t.dim * size_of(t.dtype);
}

std::int64_t contiguous_bytes(const LseView& lse) {
  return lse.heads * lse.tokens * 4;
}

void fill(Device& device, std::initializer_list<TensorView> tensors, unsigned char byte) {
  for (const TensorView& t : tensors) {
    if (t.data != nullptr) device.fill(t.data, byte, contiguous_bytes(t));
  }
}

void fill(Device& device, const LseView& lse, unsigned char byte) {
  device.fill(lse.data, byte, contiguous_bytes(lse));
}

void poison(Device& device, std::initializer_list<TensorView> tensors) {
  fill(device, tensors, kPoison);
}

void poison(Device& device, const LseView& lse) {
  fill(device, lse, kPoison);
}

std::uint64_t hash_values(Device& device, std::initializer_list<TensorView> tensors) {
  std::uint64_t hash = 0;
  for (const TensorView& t : tensors) {
    if (t.data != nullptr) hash = device.hash(hash, t.data, contiguous_bytes(t));
  }
  return hash;
}

std::vector<std::span<const std::byte>> result_bytes(const PassTensors& t, Pass pass) {
  std::vector<std::span<const std::byte>> results;
  for (const std::span<std::byte> part : writable_results(t, pass)) results.emplace_back(part);
  return results;
}

void fill_results(Device& device, const PassTensors& t, Pass pass, unsigned char byte) {
  for (const std::span<std::byte> part : writable_results(t, pass)) {
    device.fill(part.data(), byte, std::ssize(part));
  }
}

std::uint64_t hash_results(Device& device, const PassTensors& t, Pass pass) {
  std::uint64_t hash = 0;
  for (const auto part : result_bytes(t, pass)) {
    hash = device.hash(hash, part.data(), std::ssize(part));
  }
  return hash;
}

Outputs Outputs::for_problem(const Problem& p) {
  Outputs out;
  out.device = &Device::get(p.device);
  const auto tensor = [&](std::int64_t tokens, int heads, std::int64_t dim) {
    return OutputTensor(out.device->memory(),
                        {nullptr, p.dtype, tokens, heads, dim, heads * dim, dim});
  };
  out.o = tensor(p.tokens_q, p.heads_q, p.value_dim());
  out.lse = OutputLse(out.device->memory(), {nullptr, p.heads_q, p.tokens_q, p.tokens_q});
  if (p.backward) {
    out.dq = tensor(p.tokens_q, p.heads_q, p.head_dim);
    out.dk = tensor(p.tokens_k, p.heads_k, p.head_dim);
    out.dv = tensor(p.tokens_k, p.heads_k, p.value_dim());
    if (p.sink) {
      out.dsink = OutputTensor(out.device->memory(),
                               {nullptr, DType::float32, 1, p.heads_q, 1, p.heads_q, 1});
    }
  }
  out.margins().fill();
  return out;
}

ForwardArgs Outputs::forward_args(const Inputs& inputs) const {
  ForwardArgs args;
  args.q = inputs.q.view();
  args.k = inputs.k.view();
  args.v = inputs.v.view();
  args.o = o.view();
  args.lse = lse.view();
  args.sink = inputs.sink_logits();
  args.stream = device->stream();
  return args;
}

BackwardArgs Outputs::backward_args(const Inputs& inputs) const {
  BackwardArgs args;
  args.dout = inputs.dout.view();
  args.q = inputs.q.view();
  args.k = inputs.k.view();
  args.v = inputs.v.view();
  args.o = o.view();
  args.lse = lse.view();
  args.dq = dq.view();
  args.dk = dk.view();
  args.dv = dv.view();
  args.dsink = static_cast<float*>(dsink.view().data);
  if (args.dsink != nullptr) args.sink = inputs.sink_logits();
  args.stream = device->stream();
  return args;
}

PassTensors Outputs::with(const Inputs& inputs) const {
  return {inputs.q.view(), inputs.k.view(), inputs.v.view(), inputs.dout.view(), o.view(),
          {lse.view()},    dq.view(),       dk.view(),       dv.view(),          dsink.view()};
}

void Outputs::poison_forward() const {
  poison(*device, {o.view()});
  poison(*device, lse.view());
}

void Outputs::poison_backward() const {
  poison(*device, {dq.view(), dk.view(), dv.view(), dsink.view()});
}

Margins Outputs::margins() const {
  Margins all(*device);
  all.add("o", o.view().data, o.bytes());
  all.add("lse", lse.view().data, lse.bytes());
  all.add("dq", dq.view().data, dq.bytes());
  all.add("dk", dk.view().data, dk.bytes());
  all.add("dv", dv.view().data, dv.bytes());
  all.add("dsink", dsink.view().data, dsink.bytes());
  return all;
}

std::string Outputs::written_margin() const {
  return margins().written();
}

std::uint64_t fingerprint(const Inputs& inputs, Device& device) {
  const std::uint64_t hash =
      hash_values(device, {inputs.q.view(), inputs.k.view(), inputs.v.view(), inputs.dout.view()});
  if (inputs.sink_logits() == nullptr) return hash;
  return device.hash(hash, inputs.sink_logits(), inputs.sink.bytes());
}

std::int64_t tensor_bytes(const Problem& p) {
  const std::int64_t rows = p.tokens_q * p.heads_q + p.tokens_k * p.heads_k;
  // q and o, k and v; dq and dO, dk and dv.
  const std::int64_t values = rows * (p.head_dim + p.value_dim()) * size_of(p.dtype);
  const std::int64_t sink = p.sink ? p.heads_q * 4 : 0;
  const std::int64_t forward = values + p.heads_q * p.tokens_q * 4 + sink;
  return p.backward ? forward + values + sink : forward;
}

}  // namespace longca
