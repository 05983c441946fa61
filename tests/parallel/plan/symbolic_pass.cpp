#include "parallel/plan/symbolic_pass.h"

#include <algorithm>
#include <array>

#include "parallel/plan/accesses.h"

namespace longca::testing {
namespace {

constexpr std::array kInputs = {TensorRole::q, TensorRole::k, TensorRole::v, TensorRole::dout};

bool is_input(TensorRole role) {
  return std::find(kInputs.begin(), kInputs.end(), role) != kInputs.end();
}

std::string element(const Value& value) {
  switch (value.kind) {
    case Kind::nothing:
      return "nothing";
    case Kind::padding:
      return "padding";
    case Kind::zero:
      return "zero";
    case Kind::value:
      break;
  }
  return fmt::format("{} of token {}, head {}", to_string(value.role), value.token, value.head);
}

template <typename Visit>
void for_each_row(const Region& region, Visit&& visit) {
  for (std::int64_t row = 0; row < region.tokens.size(); ++row) {
    for (std::int64_t head = 0; head < region.heads.size(); ++head) visit(row, head);
  }
}

}  // namespace

template <typename... Args>
void SymbolicPass::fault(fmt::format_string<Args...> format, Args&&... args) {
  if (at_.complained) return;
  at_.complained = true;
  world_.faults.push_back(fmt::format("{}: {}", name_of(plan(), backward_, at_.op),
                                      fmt::format(format, std::forward<Args>(args)...)));
}

bool SymbolicPass::run() {
  const std::size_t before = world_.faults.size();
  messages_ = match_messages(world_.plans, backward_, world_.faults);
  const auto events = run_schedule(world_.plans, backward_, messages_, world_.faults);
  if (world_.faults.size() != before) return false;

  for (int i = 0; i < std::ssize(messages_); ++i) {
    const auto& [send, receive] = messages_[static_cast<std::size_t>(i)];
    sent_[{send.rank, send.op, send.index}] = i;
    received_[{receive.rank, receive.op, receive.index}] = i;
  }
  in_flight_.resize(messages_.size());
  held_.resize(world_.plans.size());
  const std::int64_t tokens = world_.truth.tokens();
  cells_.assign(static_cast<std::size_t>(world_.truth.heads_q() * tokens * tokens), 0);
  for (int rank = 0; rank < std::ssize(world_.plans); ++rank) own(rank);

  std::map<std::pair<int, int>, bool> complained;
  for (const Event& event : events) {
    at_ = {event.rank, event.op, complained[{event.rank, event.op}]};
    const Op& op = ops_of(plan(), backward_)[static_cast<std::size_t>(event.op)];
    if (const auto* exchange = std::get_if<Exchange>(&op.what)) {
      event.begin ? begin(*exchange) : end(*exchange);
    } else if (!event.begin) {
      std::visit([this](const auto& what) { apply(what); }, op.what);
    }
    complained[{event.rank, event.op}] = at_.complained;
  }
  check_cells();
  return true;
}

/// The caller's tensors as the pass finds them.
void SymbolicPass::own(int rank) {
  at_.rank = rank;
  contents().begin_pass();
  std::vector<int> tokens;
  for (const Placement& placement : plan().results) {
    const PlanBuffer& buffer = plan().buffers[static_cast<std::size_t>(placement.region.buffer)];
    if (placement.role != TensorRole::o || !buffer.external) continue;
    for (const Range range : placement.tokens) {
      for (std::int64_t t = range.begin; t < range.end; ++t) tokens.push_back(static_cast<int>(t));
    }
    break;
  }
  for (int i = 0; i < std::ssize(plan().buffers); ++i) {
    const PlanBuffer& buffer = plan().buffers[static_cast<std::size_t>(i)];
    if (!buffer.external) continue;
    const Region whole = plan().whole(i);
    for_each_row(whole, [&](std::int64_t row, std::int64_t head) {
      Value& value = contents().at(whole, row, head);
      if (row >= std::ssize(tokens)) {
        value = {.kind = Kind::padding};
      } else if (is_input(buffer.role)) {
        const int token = tokens[static_cast<std::size_t>(row)];
        value = {Kind::value, buffer.role, token, static_cast<int>(head)};
        held_[static_cast<std::size_t>(rank)].insert({buffer.role, token, static_cast<int>(head)});
      }
    });
  }
}

void SymbolicPass::begin(const Exchange& exchange) {
  for (int i = 0; i < std::ssize(exchange.sends); ++i) {
    const Region& region = exchange.sends[static_cast<std::size_t>(i)].region;
    const int message = sent_.at({at_.rank, at_.op, i});
    for_each_row(region, [&](std::int64_t row, std::int64_t head) {
      Value value = contents().at(region, row, head);
      value.origin = origins_.add(message, row, value.origin);
      in_flight_[static_cast<std::size_t>(message)].push_back(value);
    });
  }
}

void SymbolicPass::end(const Exchange& exchange) {
  for (int i = 0; i < std::ssize(exchange.receives); ++i) {
    const Region& region = exchange.receives[static_cast<std::size_t>(i)].region;
    const auto& values = in_flight_[static_cast<std::size_t>(received_.at({at_.rank, at_.op, i}))];
    auto value = values.begin();
    for_each_row(region, [&](std::int64_t row, std::int64_t head) {
      contents().at(region, row, head) = *value;
      if (value->kind == Kind::value && is_input(value->role) &&
          !held_[static_cast<std::size_t>(at_.rank)]
               .insert({value->role, value->token, value->head})
               .second) {
        fault("receives {} a second time", element(*value));
      }
      ++value;
    });
  }
}

void SymbolicPass::apply(const Copy& copy) {
  for_each_row(copy.from, [&](std::int64_t row, std::int64_t head) {
    contents().at(copy.to, row, head) = contents().at(copy.from, row, head);
  });
}

void SymbolicPass::apply(const Convert& convert) {
  apply(Copy{convert.from, convert.to});
}

void SymbolicPass::apply(const Clear& clear) {
  for_each_row(clear.region, [&](std::int64_t row, std::int64_t head) {
    contents().at(clear.region, row, head) = {.kind = Kind::zero};
  });
}

void SymbolicPass::apply(const Add& add) {
  for_each_row(add.from, [&](std::int64_t row, std::int64_t head) {
    const Value& from = contents().at(add.from, row, head);
    Value& into = contents().at(add.into, row, head);
    if (from.kind == Kind::zero) return;
    if (from.kind == Kind::value && (into.kind == Kind::value || into.kind == Kind::zero)) {
      if (from.set != 0) origins_.mark_used(from.origin);
      accumulate(add.into, row, head, from, false);
    } else if (from.kind == Kind::value || into.kind == Kind::value) {
      fault("adds {} to {}, row {}", element(from), element(into), row);
    } else {
      into.kind = std::min(from.kind, into.kind);  // of padding nothing is asked
    }
  });
}

const Value* SymbolicPass::read(const Region& region, std::int64_t row, std::int64_t head,
                                TensorRole role) {
  const Value& value = contents().at(region, row, head);
  if (value.kind == Kind::value && value.role == role) return &value;
  fault("reads {} from row {} of {}, which holds {}", to_string(role), row, name_of(plan(), region),
        element(value));
  return nullptr;
}

const Value* SymbolicPass::read_like(const Region& region, std::int64_t row, std::int64_t head,
                                     TensorRole role, const Value& like) {
  const Value* value = read(region, row, head, role);
  if (value == nullptr || (value->token == like.token && value->head == like.head)) return value;
  fault("takes {} together with {}", element(*value), element(like));
  return nullptr;
}

void SymbolicPass::accumulate(const Region& region, std::int64_t row, std::int64_t head,
                              const Value& element_and_set, bool first) {
  Value& into = contents().at(region, row, head);
  Value result = element_and_set;
  result.origin = -1;
  if (!first && into.kind == Kind::value) {
    if (!into.same_element(element_and_set)) {
      return fault("adds {} to {}", element(element_and_set), element(into));
    }
    if (into.set != 0) origins_.mark_used(into.origin);
    result.set = world_.sets.disjoint_union(into.set, element_and_set.set);
    if (result.set < 0) return fault("adds the same cells to {} twice", element(into));
  } else if (!first && into.kind != Kind::zero) {
    return fault("adds to {} in {}", element(into), name_of(plan(), region));
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
      if (key_value.kind != Kind::value) continue;  // said above
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
    if (query.kind != Kind::value) return;
    const Value& o = contents().at(a.o, row, head);
    const Value& lse = contents().at(a.lse, row, head);
    if (!a.first && (o.kind != lse.kind || !world_.sets.equal(o.set, lse.set))) {
      fault("merges into o and lse that do not belong together: {} and {}", element(o),
            element(lse));
    }
    const int set = world_.sets.make(keys[static_cast<std::size_t>(row * heads + head)]);
    Value result = {Kind::value, TensorRole::o, query.token, query.head, set};
    accumulate(a.o, row, head, result, a.first);
    result.role = TensorRole::lse;
    accumulate(a.lse, row, head, result, a.first);
  });
}

void SymbolicPass::expect_finished(const Region& region, std::int64_t row, std::int64_t head,
                                   TensorRole role, const Value& q) {
  const Value& value = contents().at(region, row, head);
  const int all = world_.truth.keys_of(q.head, q.token);
  if (value.kind == Kind::zero && world_.sets.equal(all, 0)) return;
  const Value* held = read_like(region, row, head, role, q);
  if (held == nullptr) return;
  origins_.mark_used(held->origin);
  if (!world_.sets.equal(held->set, all)) {
    fault("takes {} of an unfinished softmax: it lacks key {}", element(*held),
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
    if (q.kind != Kind::value) return;
    read_like(a.dout, row, head, TensorRole::dout, q);
    expect_finished(a.o, row, head, TensorRole::o, q);
    expect_finished(a.lse, row, head, TensorRole::lse, q);
    const int set = world_.sets.make(keys[static_cast<std::size_t>(row * heads + head)]);
    accumulate(a.dq, row, head, {Kind::value, TensorRole::dq, q.token, q.head, set}, a.first_dq);
  });
  for_each_row(a.k, [&](std::int64_t row, std::int64_t head) {
    const Value& k = contents().at(a.k, row, head);
    if (k.kind != Kind::value) return;
    const int set = world_.sets.make(queries[static_cast<std::size_t>(row * kv_heads + head)]);
    accumulate(a.dk, row, head, {Kind::value, TensorRole::dk, k.token, k.head, set}, a.first_dkv);
    accumulate(a.dv, row, head, {Kind::value, TensorRole::dv, k.token, k.head, set}, a.first_dkv);
  });
}

void SymbolicPass::check_cells() {
  const std::int64_t tokens = world_.truth.tokens();
  std::int64_t missing = 0;
  std::string example;
  for (int head = 0; head < world_.truth.heads_q(); ++head) {
    for (std::int64_t q = 0; q < tokens; ++q) {
      for (std::int64_t k = 0; k < tokens; ++k) {
        const auto at = static_cast<std::size_t>((head * tokens + q) * tokens + k);
        if (cells_[at] != 0 || !world_.truth.allows(head, q, k)) continue;
        if (missing++ == 0) example = fmt::format("head {}, query {}, key {}", head, q, k);
      }
    }
  }
  if (missing > 0) {
    world_.faults.push_back(fmt::format("{}: {} allowed cells are never computed, such as {}",
                                        backward_ ? "backward" : "forward", missing, example));
  }
}

void SymbolicPass::place(const RankPlan& plan, const Placement& placement,
                         std::vector<int>& found) {
  std::vector<int> tokens;
  for (const Range range : placement.tokens) {
    for (std::int64_t t = range.begin; t < range.end; ++t) tokens.push_back(static_cast<int>(t));
  }
  bool complained = false;
  for_each_row(placement.region, [&](std::int64_t row, std::int64_t head) {
    const Value& value =
        world_.contents[static_cast<std::size_t>(plan.rank)].at(placement.region, row, head);
    const Value wanted = {Kind::value, placement.role, tokens[static_cast<std::size_t>(row)],
                          static_cast<int>(placement.heads.begin + head)};
    ++found[static_cast<std::size_t>(wanted.head * world_.truth.tokens() + wanted.token)];
    const int all = world_.truth.expected(wanted);
    const bool is_it =
        value.kind == Kind::zero || (value.kind == Kind::value && value.same_element(wanted));
    if (value.kind == Kind::value) origins_.mark_used(value.origin);
    if (complained || (is_it && world_.sets.equal(value.set, all))) return;
    complained = true;
    const std::string where = fmt::format("rank {}: {} is said to lie in {}", plan.rank,
                                          element(wanted), name_of(plan, placement.region));
    if (!is_it) {
      world_.faults.push_back(fmt::format("{}, where there is {}", where, element(value)));
      return;
    }
    const std::int64_t missing = world_.sets.first_missing(all, value.set);
    world_.faults.push_back(fmt::format("{}, and lacks what comes from {} {}", where,
                                        world_.truth.has_kv_heads(placement.role) ? "query" : "key",
                                        missing % world_.truth.tokens()));
  });
}

void SymbolicPass::check_results(std::span<const TensorRole> roles) {
  for (const TensorRole role : roles) {
    const int heads =
        world_.truth.has_kv_heads(role) ? world_.truth.heads_k() : world_.truth.heads_q();
    std::vector<int> found(static_cast<std::size_t>(heads * world_.truth.tokens()), 0);
    for (const RankPlan& plan : world_.plans) {
      for (const Placement& placement : plan.results) {
        if (placement.role == role) place(plan, placement, found);
      }
    }
    const auto wrong = std::find_if(found.begin(), found.end(), [](int n) { return n != 1; });
    if (wrong == found.end()) continue;
    const std::int64_t at = wrong - found.begin();
    world_.faults.push_back(fmt::format("{} of token {}, head {} is said to lie in {} places",
                                        to_string(role), at % world_.truth.tokens(),
                                        at / world_.truth.tokens(), *wrong));
  }
}

Traffic SymbolicPass::finish() {
  Traffic traffic;
  std::map<std::pair<int, std::int64_t>, int> used;  // of the heads of a message's row
  for (const auto& entry : origins_.entries()) used[{entry.message, entry.row}] += entry.used;
  std::set<std::pair<int, int>> complained;
  for (const auto& [key, count] : used) {
    const auto& [message, row] = key;
    const MessageEnd& send = messages_[static_cast<std::size_t>(message)].send;
    const RankPlan& plan = world_.plans[static_cast<std::size_t>(send.rank)];
    const auto& op = ops_of(plan, backward_)[static_cast<std::size_t>(send.op)];
    const auto& exchange = std::get<Exchange>(op.what);
    const Message& what = exchange.sends[static_cast<std::size_t>(send.index)];
    Region one_row = what.region;
    one_row.tokens = {one_row.tokens.begin + row, one_row.tokens.begin + row + 1};
    const Problem& problem = world_.problem.problem;
    const std::int64_t bytes = region_bytes(plan, one_row, problem.head_dim, problem.dtype);
    traffic.sent += bytes;
    const auto& values = in_flight_[static_cast<std::size_t>(message)];
    const Value& first = values[static_cast<std::size_t>(row * what.region.heads.size())];
    if (first.kind == Kind::padding) {
      traffic.padding += bytes;
    } else if (count == 0) {
      traffic.unneeded += bytes;
      const bool exact =
          exchange.pattern == Pattern::group_cast || exchange.pattern == Pattern::group_reduce;
      if (exact && options_.exact_casts && complained.insert({send.rank, send.op}).second) {
        world_.faults.push_back(fmt::format("{}: sends {} to rank {}, which nothing needs",
                                            name_of(plan, backward_, send.op), element(first),
                                            what.peer));
      }
    }
  }
  return traffic;
}

}  // namespace longca::testing
