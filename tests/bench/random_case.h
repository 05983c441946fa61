#pragma once

#include <rapidcheck.h>

#include "bench/suite/axes.h"
#include "bench/suite/case.h"
#include "bench/suite/scheme_axes.h"

namespace longca::testing {

/// Canonical cases over the whole range of every axis.
inline rc::Gen<Case> random_case() {
  return rc::gen::exec([] {
    Case c;
    c.kernel = "naive";
    c.mask = mask_table()[*rc::gen::inRange<std::size_t>(0, mask_table().size())].name;
    c.tokens = *rc::gen::inRange<std::int64_t>(1, std::int64_t{1} << 30);
    c.heads_k = *rc::gen::inRange(1, 9);
    c.heads_q = c.heads_k * *rc::gen::inRange(1, 9);
    c.head_dim = *rc::gen::element(1, 64, 128, 1024);
    if (c.head_dim > 1 && *rc::gen::arbitrary<bool>()) {
      c.head_dim_v = *rc::gen::inRange(1, c.head_dim);
    }
    c.dtype = *rc::gen::element(DType::float32, DType::bfloat16, DType::float16);
    c.pass = *rc::gen::element(Pass::forward, Pass::backward);
    if (*rc::gen::arbitrary<bool>()) c.deterministic = 1;
    if (*rc::gen::arbitrary<bool>()) c.sink = 1;
    if (*rc::gen::arbitrary<bool>()) c.softcap = *rc::gen::inRange(1, 100001) / 1e3;
    c.seed = *rc::gen::inRange<std::uint64_t>(0, std::uint64_t{1} << 62);
    c.lengths = *rc::gen::element<std::string>("pile", "prolong64k+long");
    if (*rc::gen::arbitrary<bool>()) c.window = *rc::gen::inRange<std::int64_t>(0, 1 << 20);
    c.block_tokens = *rc::gen::inRange<std::int64_t>(1, 1 << 20);
    c.density = *rc::gen::inRange(1, 1000001) / 1e6;
    c.block = *rc::gen::inRange<std::int64_t>(1, 1 << 20);
    c.block_heads = *rc::gen::element<std::string>("kv", "query");
    if (*rc::gen::arbitrary<bool>()) c.block_causal = 1;
    if (*rc::gen::arbitrary<bool>()) c.selection = "scores";
    if (*rc::gen::arbitrary<bool>()) c.inputs = "clustered";
    c.mode = *rc::gen::element<std::string>("burst", "sustained");
    if (*rc::gen::arbitrary<bool>()) {
      c.scheme = *rc::gen::elementOf(scheme_names());
      c.ranks = *rc::gen::inRange(1, 1025);
      c.shard = *rc::gen::elementOf(shard_names());
      if (*rc::gen::arbitrary<bool>()) c.factor = *rc::gen::inRange(1, 17);
      if (*rc::gen::arbitrary<bool>()) {
        c.transport = *rc::gen::element<std::string>("mpi", "nccl", "peer");
      }
    }
    return canonical(c);
  });
}

}  // namespace longca::testing
