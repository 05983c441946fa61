#include "parallel/schemes/build/ring_gradients.h"

#include <fmt/format.h>

#include <utility>

namespace longca {
void RingGradients::begin(std::vector<KeyPair> own) {
  own_ = std::move(own);
  ready_.clear();
  in_flight_.clear();
}

KeyPair RingGradients::buffer(BufferKind kind, int which, int group, std::int64_t rows) {
  static constexpr const char* kNames[] = {"share", "hop", "home", "outer arrival"};
  const std::int64_t heads = own_[static_cast<std::size_t>(group)].k.heads.size();
  auto [it, is_new] = buffers_.try_emplace({kind, which, group}, 0, 0);
  if (is_new) {
    const auto add = [&](TensorRole role) {
      return context_.writer.add_buffer({fmt::format("{} of {} {}, group {}", to_string(role),
                                                     kNames[static_cast<int>(kind)], which, group),
                                         role, context_.max_rows(), static_cast<int>(heads), true,
                                         false, false});
    };
    const int dk = add(TensorRole::dk);
    it->second = {dk, add(TensorRole::dv)};
  }
  const auto [dk, dv] = it->second;
  return {{dk, {0, rows}, {0, heads}}, {dv, {0, rows}, {0, heads}}};
}

KeyPair RingGradients::home(int round, int group, std::int64_t rows) {
  if (round == 0) return rows_of_pair(own_[static_cast<std::size_t>(group)], {0, rows});
  return buffer(BufferKind::home, round % 2, group, rows);
}

GradientTarget& RingGradients::target(int, int group) {
  return targets_[static_cast<std::size_t>(group)];
}

void RingGradients::before(int step) {
  in_flight_ = std::exchange(ready_, {});
  for (const Transfer& transfer : in_flight_) send(transfer, step);

  const int place = context_.place.step_of_round(step);
  const std::int64_t tokens = context_.tokens(step);
  targets_.clear();
  for (int group = 0; group < context_.groups; ++group) {
    if (place == 0) {
      targets_.push_back({home(context_.place.round(step), group, tokens)});
    } else {  // a sum starts at the second step of its round
      const bool begins = place == 1;
      targets_.push_back(
          {buffer(begins ? BufferKind::hop : BufferKind::share, 1, group, tokens), begins});
    }
  }
}

void RingGradients::after(int step) {
  const RingCoordinates& ring = context_.place;
  const int place = ring.step_of_round(step);
  for (const Transfer& transfer : in_flight_) land(transfer, step);
  in_flight_.clear();
  if (place > 0) ready_.push_back({Way::inner, step});
  if (ring.size == 1 && step > 0) ready_.push_back({Way::outer, step});
}

LateSums RingGradients::finish(const std::function<void()>& meanwhile) {
  const int step = context_.place.steps();
  const auto send_ready = [&] {
    in_flight_ = std::exchange(ready_, {});
    for (const Transfer& transfer : in_flight_) send(transfer, step);
  };
  send_ready();
  meanwhile();
  LateSums last(static_cast<std::size_t>(context_.groups));
  while (!in_flight_.empty()) {
    // The caller adds the last sum from its buffer, so nothing may arrive there after it.
    const bool is_last = ready_.empty() && in_flight_.size() == 1;
    for (const Transfer& transfer : in_flight_) land(transfer, step, is_last ? &last : nullptr);
    send_ready();
  }
  return last;
}

void RingGradients::send(const Transfer& transfer, int step) {
  const RingCoordinates& ring = context_.place;
  const int round = ring.round(transfer.step);
  const int next = (ring.step_of_round(transfer.step) + 1) % ring.size;
  const bool inner = transfer.way == Way::inner;
  // Inside a window, the arriving sum is of the block of the next step (after the last one, of the
  // round's first). From the window before it is of the first block of the next round; in the last
  // round, of the own block.
  const int arriving = inner ? round * ring.size + next : (round + 1) % ring.windows * ring.size;
  const std::int64_t sent = context_.tokens(transfer.step);
  const std::int64_t received = context_.tokens(arriving);
  const int to = inner ? context_.peer(0, 1) : context_.peer(1, 0);
  const int from = inner ? context_.peer(0, -1) : context_.peer(-1, 0);
  const int place = ring.step_of_round(transfer.step);
  Exchange exchange{Pattern::send_receive, {}, {}};
  for (int group = 0; group < context_.groups; ++group) {
    if (sent > 0) {
      const KeyPair sum =
          inner ? buffer(BufferKind::hop, place % 2, group, sent) : home(round, group, sent);
      exchange.sends.insert(exchange.sends.end(), {{to, sum.k}, {to, sum.v}});
    }
    if (received > 0) {
      const KeyPair sum = inner ? buffer(BufferKind::hop, (place + 1) % 2, group, received)
                                : buffer(BufferKind::arrived, 0, group, received);
      exchange.receives.insert(exchange.receives.end(), {{from, sum.k}, {from, sum.v}});
    }
  }
  context_.writer.add(std::move(exchange), step);
}

void RingGradients::land(const Transfer& transfer, int step, LateSums* last) {
  const RingCoordinates& ring = context_.place;
  const int round = ring.round(transfer.step);
  const int place = ring.step_of_round(transfer.step);
  const bool ends_at_home = place + 1 == ring.size;
  const auto add_at_home = [&](const KeyPair& from, int to_round, int group) {
    const std::int64_t tokens = from.k.tokens.size();
    if (last != nullptr && to_round == 0) {
      (*last)[static_cast<std::size_t>(group)].push_back({from, {0, tokens}});
    } else {
      add_all(from, home(to_round, group, tokens), step);
    }
  };
  for (int group = 0; group < context_.groups; ++group) {
    if (transfer.way == Way::outer) {
      const int next = (round + 1) % ring.windows;
      const std::int64_t tokens = context_.tokens(next * ring.size);
      add_at_home(buffer(BufferKind::arrived, 0, group, tokens), next, group);
    } else if (ends_at_home) {
      const std::int64_t tokens = context_.tokens(round * ring.size);
      add_at_home(buffer(BufferKind::hop, (place + 1) % 2, group, tokens), round, group);
    } else {
      const GradientTarget& share = targets_[static_cast<std::size_t>(group)];
      for (const Range rows : share.coverage.rows()) {
        add_all(rows_of_pair(share.into, rows),
                rows_of_pair(buffer(BufferKind::hop, (place + 1) % 2, group, 0), rows), step);
      }
    }
  }
  if (transfer.way == Way::inner && ends_at_home && round > 0) {
    ready_.push_back({Way::outer, round * ring.size});
  }
}

void RingGradients::add_all(const KeyPair& from, const KeyPair& into, int step) {
  context_.writer.add(Add{from.k, into.k}, step);
  context_.writer.add(Add{from.v, into.v}, step);
}

}  // namespace longca
