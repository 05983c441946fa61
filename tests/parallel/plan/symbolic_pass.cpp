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

}  // namespace

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
  sink_gradients_.assign(static_cast<std::size_t>(world_.truth.heads_q() * tokens), 0);
  cleared_dsink_.assign(world_.plans.size(), false);
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
  if (backward_ && world_.truth.has_sinks()) check_sink_gradients();
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
        value = {.kind = ContentKind::padding};
      } else if (is_input(buffer.role)) {
        const int token = tokens[static_cast<std::size_t>(row)];
        value = {ContentKind::value, buffer.role, token, static_cast<int>(head)};
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
      if (value->kind == ContentKind::value && is_input(value->role) &&
          !held_[static_cast<std::size_t>(at_.rank)]
               .insert({value->role, value->token, value->head})
               .second) {
        fault("receives {} a second time", describe(*value));
      }
      ++value;
    });
  }
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

/// Each row counts once, and no rank leaves dsink as it was.
void SymbolicPass::check_sink_gradients() {
  const auto wrong = std::ranges::find_if(sink_gradients_, [](int times) { return times != 1; });
  if (wrong != sink_gradients_.end()) {
    const std::int64_t at = wrong - sink_gradients_.begin();
    world_.faults.push_back(fmt::format("token {}, head {} counts {} times in dsink",
                                        at % world_.truth.tokens(), at / world_.truth.tokens(),
                                        *wrong));
  }
  const auto never = std::ranges::find(cleared_dsink_, false);
  if (never != cleared_dsink_.end()) {
    world_.faults.push_back(
        fmt::format("rank {} never writes dsink", never - cleared_dsink_.begin()));
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
    const Value wanted = {ContentKind::value, placement.role, tokens[static_cast<std::size_t>(row)],
                          static_cast<int>(placement.heads.begin + head)};
    ++found[static_cast<std::size_t>(wanted.head * world_.truth.tokens() + wanted.token)];
    const int all = world_.truth.expected(wanted);
    const bool is_it = value.kind == ContentKind::zero ||
                       (value.kind == ContentKind::value && value.same_element(wanted));
    if (value.kind == ContentKind::value) origins_.mark_used(value.origin);
    if (complained || (is_it && world_.sets.equal(value.set, all))) return;
    complained = true;
    const std::string where = fmt::format("rank {}: {} is said to lie in {}", plan.rank,
                                          describe(wanted), name_of(plan, placement.region));
    if (!is_it) {
      world_.faults.push_back(fmt::format("{}, where there is {}", where, describe(value)));
      return;
    }
    const std::int64_t missing = world_.sets.first_missing(all, value.set);
    if (missing == world_.truth.sink() && !world_.truth.has_kv_heads(placement.role)) {
      world_.faults.push_back(fmt::format("{}, and lacks what comes from the sink", where));
      return;
    }
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
    if (first.kind == ContentKind::padding) {
      traffic.padding += bytes;
    } else if (count == 0) {
      traffic.unneeded += bytes;
      const bool exact =
          exchange.pattern == Pattern::group_cast || exchange.pattern == Pattern::group_reduce;
      if (exact && options_.exact_casts && complained.insert({send.rank, send.op}).second) {
        world_.faults.push_back(fmt::format("{}: sends {} to rank {}, which nothing needs",
                                            name_of(plan, backward_, send.op), describe(first),
                                            what.peer));
      }
    }
  }
  return traffic;
}

}  // namespace longca::testing
