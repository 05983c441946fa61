#include "bench/cell_tensors.h"

#include <array>
#include <cstring>
#include <initializer_list>

#include "attention/reference/verify.h"

namespace longca {
namespace {

/// FNV-1a over 64-bit words in four independent lanes, so that it runs at the speed of memory.
std::uint64_t hash_bytes(std::uint64_t seed, const void* data, std::int64_t bytes) {
  constexpr std::uint64_t kPrime = 0x100000001b3ULL;
  std::array<std::uint64_t, 4> lanes{seed ^ 0xcbf29ce484222325ULL, seed + 1, seed + 2, seed + 3};
  const auto* p = static_cast<const unsigned char*>(data);
  std::array<std::uint64_t, 4> words{};
  for (; bytes > 0; bytes -= 32, p += 32) {
    words = {};
    std::memcpy(words.data(), p, static_cast<std::size_t>(bytes < 32 ? bytes : 32));
    for (std::size_t i = 0; i < 4; ++i) lanes[i] = (lanes[i] ^ words[i]) * kPrime;
  }
  std::uint64_t hash = seed;
  // High bits of a lane see only low ones of its words: mix before joining.
  for (const std::uint64_t lane : lanes)
    hash = ((hash ^ lane ^ (lane >> 29)) * kPrime) ^ (hash >> 31);
  return hash;
}

std::uint64_t hash_tensors(std::initializer_list<const HostTensor*> tensors) {
  std::uint64_t hash = 0;
  for (const HostTensor* t : tensors) hash = hash_bytes(hash, t->view().data, t->bytes());
  return hash;
}

}  // namespace

Outputs Outputs::for_problem(const Problem& p) {
  Outputs out;
  out.o = HostTensor(p.dtype, p.tokens_q, p.heads_q, p.head_dim);
  out.lse = HostLse(p.heads_q, p.tokens_q);
  if (p.backward) {
    out.dq = HostTensor(p.dtype, p.tokens_q, p.heads_q, p.head_dim);
    out.dk = HostTensor(p.dtype, p.tokens_k, p.heads_k, p.head_dim);
    out.dv = HostTensor(p.dtype, p.tokens_k, p.heads_k, p.head_dim);
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
  return args;
}

void Outputs::poison_forward() const {
  poison(o.view());
  poison(lse.view());
}

void Outputs::poison_backward() const {
  for (const HostTensor* t : {&dq, &dk, &dv}) poison(t->view());
}

std::uint64_t Outputs::forward_fingerprint() const {
  return hash_bytes(hash_tensors({&o}), lse.view().data, lse.bytes());
}

std::uint64_t Outputs::backward_fingerprint() const {
  return hash_tensors({&dq, &dk, &dv});
}

std::uint64_t fingerprint(const Inputs& inputs) {
  return hash_tensors({&inputs.q, &inputs.k, &inputs.v, &inputs.dout});
}

std::int64_t tensor_bytes(const Problem& p) {
  const std::int64_t q = p.tokens_q * p.heads_q * p.head_dim * size_of(p.dtype);
  const std::int64_t k = p.tokens_k * p.heads_k * p.head_dim * size_of(p.dtype);
  const std::int64_t forward = 2 * q + 2 * k + p.heads_q * p.tokens_q * 4;
  return p.backward ? forward + 2 * q + 2 * k : forward;
}

}  // namespace longca
