// What each kind of op does to the symbols.
#include <algorithm>

#include "parallel/plan/symbolic_pass.h"

namespace longca::testing {

void SymbolicPass::apply(const Copy& copy) {
  for_each_row(copy.from, [&](std::int64_t row, std::int64_t head) {
    contents().at(copy.to, row, head) = contents().at(copy.from, row, head);
  });
}

void SymbolicPass::apply(const Convert& convert) {
  apply(Copy{convert.from, convert.to});
}

/// Zero where nothing lies; then part by part. What a part held is nothing afterwards.
void SymbolicPass::apply(const Total& total) {
  apply(Clear{total.to});
  for (const Total::Part& part : total.parts) {
    Region into = total.to;
    into.tokens.begin += part.row;
    into.tokens.end = into.tokens.begin + part.from.tokens.size();
    apply(Add{part.from, into});
    for_each_row(part.from, [&](std::int64_t row, std::int64_t head) {
      contents().at(part.from, row, head) = {};
    });
  }
}

void SymbolicPass::apply(const Clear& clear) {
  for_each_row(clear.region, [&](std::int64_t row, std::int64_t head) {
    contents().at(clear.region, row, head) = {.kind = ContentKind::zero};
  });
}

void SymbolicPass::apply(const Add& add) {
  for_each_row(add.from, [&](std::int64_t row, std::int64_t head) {
    const Value& from = contents().at(add.from, row, head);
    Value& into = contents().at(add.into, row, head);
    if (from.kind == ContentKind::zero) return;
    if (from.kind == ContentKind::value &&
        (into.kind == ContentKind::value || into.kind == ContentKind::zero)) {
      if (from.set != 0) origins_.mark_used(from.origin);
      accumulate(add.into, row, head, from, false);
    } else if (from.kind == ContentKind::value || into.kind == ContentKind::value) {
      fault("adds {} to {}, row {}", describe(from), describe(into), row);
    } else {
      into.kind = std::min(from.kind, into.kind);  // of padding nothing is asked
    }
  });
}

const Value* SymbolicPass::read(const Region& region, std::int64_t row, std::int64_t head,
                                TensorRole role) {
  const Value& value = contents().at(region, row, head);
  if (value.kind == ContentKind::value && value.role == role) return &value;
  fault("reads {} from row {} of {}, which holds {}", to_string(role), row, name_of(plan(), region),
        describe(value));
  return nullptr;
}

const Value* SymbolicPass::read_like(const Region& region, std::int64_t row, std::int64_t head,
                                     TensorRole role, const Value& like) {
  const Value* value = read(region, row, head, role);
  if (value == nullptr || (value->token == like.token && value->head == like.head)) return value;
  fault("takes {} together with {}", describe(*value), describe(like));
  return nullptr;
}

void SymbolicPass::accumulate(const Region& region, std::int64_t row, std::int64_t head,
                              const Value& element_and_set, bool first) {
  Value& into = contents().at(region, row, head);
  Value result = element_and_set;
  result.origin = -1;
  if (!first && into.kind == ContentKind::value) {
    if (!into.same_element(element_and_set)) {
      return fault("adds {} to {}", describe(element_and_set), describe(into));
    }
    if (into.set != 0) origins_.mark_used(into.origin);
    result.set = world_.sets.disjoint_union(into.set, element_and_set.set);
    if (result.set < 0) return fault("adds the same cells to {} twice", describe(into));
  } else if (!first && into.kind != ContentKind::zero) {
    return fault("adds to {} in {}", describe(into), name_of(plan(), region));
  }
  into = result;
}

void SymbolicPass::count_cell(const Value& q, const Value& k) {
  const std::int64_t tokens = world_.truth.tokens();
  if (world_.truth.kv_head(q.head) != k.head) {
    return fault("query head {} reads KV head {}", q.head, k.head);
  }
  if (!world_.truth.allows(q.head, q.token, k.token)) {
    return fault("head {}: query {} sees key {}, which the mask does not allow", q.head, q.token,
                 k.token);
  }
  std::uint8_t& times =
      cells_[static_cast<std::size_t>((q.head * tokens + q.token) * tokens + k.token)];
  if (times < 2) ++times;
  if (times > 1) {
    fault("computes the cell of head {}, query {}, key {} a second time", q.head, q.token, k.token);
  }
}

template <typename Visit>
void SymbolicPass::for_each_cell(const Region& q, const Region& k, const Region& v, int mask,
                                 Visit&& visit) {
  const Mask& m = plan().masks[static_cast<std::size_t>(mask)];
  std::vector<std::vector<std::uint8_t>> dense;
  for (int list = 0; list < m.heads(); ++list) dense.push_back(m.dense(list));
  for_each_row(k, [&](std::int64_t row, std::int64_t head) {
    const Value* key = read(k, row, head, TensorRole::k);
    if (key != nullptr) read_like(v, row, head, TensorRole::v, *key);
  });
  const std::int64_t group = q.heads.size() / k.heads.size();
  for_each_row(q, [&](std::int64_t row, std::int64_t head) {
    const Value* query = read(q, row, head, TensorRole::q);
    const auto& cells = dense[static_cast<std::size_t>(head * m.heads() / q.heads.size())];
    for (std::int64_t key = 0; query != nullptr && key < k.tokens.size(); ++key) {
      if (cells[static_cast<std::size_t>(row * k.tokens.size() + key)] == 0) continue;
      const Value& key_value = contents().at(k, key, head / group);
      if (key_value.kind != ContentKind::value) continue;  // said above
      count_cell(*query, key_value);
      origins_.mark_used(query->origin);
      origins_.mark_used(key_value.origin);
      origins_.mark_used(contents().at(v, key, head / group).origin);
      visit(row, head, key, head / group);
    }
  });
}

void SymbolicPass::apply(const Attend& a) {
  const std::int64_t heads = a.q.heads.size();
  std::vector<std::vector<std::int64_t>> keys(static_cast<std::size_t>(a.q.tokens.size() * heads));
  for_each_cell(a.q, a.k, a.v, a.mask, [&](auto row, auto head, auto key, auto kv_head) {
    keys[static_cast<std::size_t>(row * heads + head)].push_back(
        contents().at(a.k, key, kv_head).token);
  });
  for_each_row(a.q, [&](std::int64_t row, std::int64_t head) {
    const Value& query = contents().at(a.q, row, head);
    if (query.kind != ContentKind::value) return;
    const Value& o = contents().at(a.o, row, head);
    const Value& lse = contents().at(a.lse, row, head);
    if (!a.first && (o.kind != lse.kind || !world_.sets.equal(o.set, lse.set))) {
      fault("merges into o and lse that do not belong together: {} and {}", describe(o),
            describe(lse));
    }
    std::vector<std::int64_t>& members = keys[static_cast<std::size_t>(row * heads + head)];
    if (world_.truth.has_sinks() && a.first) {
      members.push_back(world_.truth.sink());
      if (query.head != a.first_head + head) {
        fault("takes the sink of head {} for {}", a.first_head + head, describe(query));
      }
    }
    const int set = world_.sets.make(members);
    Value result = {ContentKind::value, TensorRole::o, query.token, query.head, set};
    accumulate(a.o, row, head, result, a.first);
    result.role = TensorRole::lse;
    accumulate(a.lse, row, head, result, a.first);
  });
}

void SymbolicPass::apply(const JoinSinks& join) {
  const int sink = world_.sets.make({world_.truth.sink()});
  for_each_row(join.o, [&](std::int64_t row, std::int64_t head) {
    for (const Region& region : {join.o, join.lse}) {
      Value& value = contents().at(region, row, head);
      if (value.kind == ContentKind::value && value.head != join.first_head + head) {
        fault("takes the sink of head {} for {}", join.first_head + head, describe(value));
      }
      const int both = world_.sets.disjoint_union(value.set, sink);
      if (value.kind < ContentKind::zero || both < 0) {
        fault("joins a sink to {} in {}", describe(value), name_of(plan(), region));
      }
      value.set = std::max(both, 0);
    }
  });
}

void SymbolicPass::apply(const SinkGradients& g) {
  const auto rank = static_cast<std::size_t>(at_.rank);
  if (g.first == cleared_dsink_[rank]) {
    fault("{}", g.first ? "clears dsink a second time" : "adds to a dsink that nobody cleared");
  }
  cleared_dsink_[rank] = true;
  for_each_row(g.dout, [&](std::int64_t row, std::int64_t head) {
    const Value* dout = read(g.dout, row, head, TensorRole::dout);
    if (dout == nullptr) return;
    origins_.mark_used(dout->origin);
    if (dout->head != g.first_head + head) {
      fault("takes {} for head {}", describe(*dout), g.first_head + head);
    }
    expect_finished(g.o, row, head, TensorRole::o, *dout);
    expect_finished(g.lse, row, head, TensorRole::lse, *dout);
    ++sink_gradients_[static_cast<std::size_t>(dout->head * world_.truth.tokens() + dout->token)];
  });
}

void SymbolicPass::expect_finished(const Region& region, std::int64_t row, std::int64_t head,
                                   TensorRole role, const Value& q) {
  const Value& value = contents().at(region, row, head);
  const int all = world_.truth.softmax_of(q.head, q.token);
  if (value.kind == ContentKind::zero && world_.sets.equal(all, value.set)) return;
  const Value* held = read_like(region, row, head, role, q);
  if (held == nullptr) return;
  origins_.mark_used(held->origin);
  if (!world_.sets.equal(held->set, all)) {
    fault("takes {} of an unfinished softmax: it lacks key {}", describe(*held),
          world_.sets.first_missing(all, held->set));
  }
}

void SymbolicPass::apply(const AttendBackward& a) {
  const std::int64_t heads = a.q.heads.size();
  const std::int64_t kv_heads = a.k.heads.size();
  using Members = std::vector<std::vector<std::int64_t>>;
  Members keys(static_cast<std::size_t>(a.q.tokens.size() * heads));
  Members queries(static_cast<std::size_t>(a.k.tokens.size() * kv_heads));
  for_each_cell(a.q, a.k, a.v, a.mask, [&](auto row, auto head, auto key, auto kv_head) {
    const Value& q = contents().at(a.q, row, head);
    keys[static_cast<std::size_t>(row * heads + head)].push_back(
        contents().at(a.k, key, kv_head).token);
    queries[static_cast<std::size_t>(key * kv_heads + kv_head)].push_back(
        world_.truth.pair_of(q.head, q.token));
    origins_.mark_used(contents().at(a.dout, row, head).origin);
  });
  for_each_row(a.q, [&](std::int64_t row, std::int64_t head) {
    const Value& q = contents().at(a.q, row, head);
    if (q.kind != ContentKind::value) return;
    read_like(a.dout, row, head, TensorRole::dout, q);
    expect_finished(a.o, row, head, TensorRole::o, q);
    expect_finished(a.lse, row, head, TensorRole::lse, q);
    const int set = world_.sets.make(keys[static_cast<std::size_t>(row * heads + head)]);
    accumulate(a.dq, row, head, {ContentKind::value, TensorRole::dq, q.token, q.head, set},
               a.first_dq);
  });
  for_each_row(a.k, [&](std::int64_t row, std::int64_t head) {
    const Value& k = contents().at(a.k, row, head);
    if (k.kind != ContentKind::value) return;
    const int set = world_.sets.make(queries[static_cast<std::size_t>(row * kv_heads + head)]);
    accumulate(a.dk, row, head, {ContentKind::value, TensorRole::dk, k.token, k.head, set},
               a.first_dkv);
    accumulate(a.dv, row, head, {ContentKind::value, TensorRole::dv, k.token, k.head, set},
               a.first_dkv);
  });
}

}  // namespace longca::testing
