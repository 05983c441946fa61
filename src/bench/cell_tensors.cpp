#include "bench/cell_tensors.h"

#include <initializer_list>

namespace longca {
namespace {

std::uint64_t hash_tensors(Device& device, std::initializer_list<const Tensor*> tensors) {
  std::uint64_t hash = 0;
  for (const Tensor* t : tensors) hash = device.hash(hash, t->view().data, t->bytes());
  return hash;
}

/// All bits set are a NaN of every dtype.
constexpr unsigned char kPoison = 0xff;

}  // namespace

Outputs Outputs::for_problem(const Problem& p) {
  Outputs out;
  out.device = &Device::get(p.device);
  const auto tensor = [&](std::int64_t tokens, int heads) {
    return Tensor(out.device->memory(), p.dtype, tokens, heads, p.head_dim);
  };
  out.o = tensor(p.tokens_q, p.heads_q);
  out.lse = Lse(out.device->memory(), p.heads_q, p.tokens_q);
  if (p.backward) {
    out.dq = tensor(p.tokens_q, p.heads_q);
    out.dk = tensor(p.tokens_k, p.heads_k);
    out.dv = tensor(p.tokens_k, p.heads_k);
  }
  return out;
}

ForwardArgs Outputs::forward_args(const Inputs& inputs) const {
  ForwardArgs args;
  args.q = inputs.q.view();
  args.k = inputs.k.view();
  args.v = inputs.v.view();
  args.o = o.view();
  args.lse = lse.view();
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
  args.stream = device->stream();
  return args;
}

void Outputs::poison_forward() const {
  device->fill(o.view().data, kPoison, o.bytes());
  device->fill(lse.view().data, kPoison, lse.bytes());
}

void Outputs::poison_backward() const {
  for (const Tensor* t : {&dq, &dk, &dv}) device->fill(t->view().data, kPoison, t->bytes());
}

std::uint64_t Outputs::forward_fingerprint() const {
  return device->hash(hash_tensors(*device, {&o}), lse.view().data, lse.bytes());
}

std::uint64_t Outputs::backward_fingerprint() const {
  return hash_tensors(*device, {&dq, &dk, &dv});
}

std::uint64_t fingerprint(const Inputs& inputs, Device& device) {
  return hash_tensors(device, {&inputs.q, &inputs.k, &inputs.v, &inputs.dout});
}

std::int64_t tensor_bytes(const Problem& p) {
  const std::int64_t q = p.tokens_q * p.heads_q * p.head_dim * size_of(p.dtype);
  const std::int64_t k = p.tokens_k * p.heads_k * p.head_dim * size_of(p.dtype);
  const std::int64_t forward = 2 * q + 2 * k + p.heads_q * p.tokens_q * 4;
  return p.backward ? forward + 2 * q + 2 * k : forward;
}

}  // namespace longca
