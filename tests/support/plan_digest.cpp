#include "support/plan_digest.h"

#include "support/mask_digest.h"

// Structured bindings name the fields here: a field that is added or taken away does not compile,
// and one that is renamed does not matter.
namespace longca {
namespace {

using testing::Digest;

void add(Digest& out, const Region& region) {
  const auto& [buffer, tokens, heads] = region;
  out.add(buffer);
  digest(out, tokens);
  digest(out, heads);
}

template <typename... Regions>
requires(sizeof...(Regions) > 1) void add(Digest& out, const Regions&... regions) {
  (add(out, regions), ...);
}

void add(Digest& out, const std::vector<Message>& messages) {
  out.add(messages.size());
  for (const auto& [peer, region] : messages) {
    out.add(peer);
    add(out, region);
  }
}

void add(Digest& out, const Exchange& exchange) {
  const auto& [pattern, sends, receives] = exchange;
  out.add(1, pattern);
  add(out, sends);
  add(out, receives);
}

void add(Digest& out, const Copy& copy) {
  const auto& [from, to] = copy;
  out.add(2);
  add(out, from, to);
}

void add(Digest& out, const Attend& attend) {
  const auto& [q, k, v, o, lse, mask, first, first_head] = attend;
  out.add(3, mask, first);  // the head follows from the chunk: golden digests are without it
  add(out, q, k, v, o, lse);
}

void add(Digest& out, const AttendBackward& attend) {
  const auto& [dout, q, k, v, o, lse, dq, dk, dv, mask, first_dq, first_dkv] = attend;
  out.add(4, mask, first_dq, first_dkv);
  add(out, dout, q, k, v, o, lse, dq, dk, dv);
}

void add(Digest& out, const Add& op) {
  const auto& [from, into] = op;
  out.add(5);
  add(out, from, into);
}

void add(Digest& out, const Convert& convert) {
  const auto& [from, to] = convert;
  out.add(6);
  add(out, from, to);
}

void add(Digest& out, const Total& total) {
  const auto& [parts, to] = total;
  out.add(7, parts.size());
  for (const auto& [from, row] : parts) {
    add(out, from);
    out.add(row);
  }
  add(out, to);
}

void add(Digest& out, const Clear& clear) {
  const auto& [region] = clear;
  out.add(8);
  add(out, region);
}

void add(Digest& out, const JoinSinks& join) {
  const auto& [o, lse, first_head] = join;
  out.add(9, first_head);
  add(out, o, lse);
}

void add(Digest& out, const SinkGradients& gradients) {
  const auto& [dout, o, lse, first_head, first] = gradients;
  out.add(10, first_head, first);
  add(out, dout, o, lse);
}

void add(Digest& out, const std::vector<Op>& ops) {
  out.add(ops.size());
  for (const auto& [what, after, lane, step] : ops) {
    std::visit([&](const auto& op) { add(out, op); }, what);
    out.add(after);
    out.add(lane, step);
  }
}

}  // namespace

void digest(Digest& out, const RankPlan& plan) {
  const auto& [rank, ranks, buffers, masks, forward, backward, results, notes] = plan;
  out.add(rank, ranks, buffers.size());
  for (const auto& [name, role, tokens, heads, float32, external, kept] : buffers) {
    out.add(role, tokens, heads, float32, external, kept);
  }
  out.add(masks);
  add(out, forward);
  add(out, backward);
  out.add(results.size());
  for (const auto& [role, region, tokens, heads] : results) {
    out.add(role);
    add(out, region);
    out.add(tokens);
    digest(out, heads);
  }
}

}  // namespace longca
