#include "parallel/schemes/build/ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "parallel/schemes/build/ring_gradients.h"

namespace longca {

RingCoordinates RingCoordinates::of(int cp_rank, int cp_ranks, int window_size) {
  LONGCA_CHECK(window_size >= 1 && cp_ranks % window_size == 0, "{} CP ranks in windows of {}",
               cp_ranks, window_size);
  return {cp_ranks / window_size, window_size, cp_rank / window_size, cp_rank % window_size};
}

int RingCoordinates::neighbour(int windows_on, int places_on) const {
  const int other_window = (window + windows_on + windows) % windows;
  return other_window * size + (index + places_on + size) % size;
}

RingContext::RingContext(const Grid& the_grid, int the_rank, int window_size,
                         const HeadLayout& layout, HeadExchange& the_heads, PlanWriter& the_writer)
    : grid(the_grid),
      rank(the_rank),
      groups(static_cast<int>(layout.groups().size())),
      place(RingCoordinates::of(grid.cp_rank(rank), grid.cp_ranks(), window_size)),
      heads(the_heads),
      writer(the_writer),
      counts_(static_cast<std::size_t>(grid.cp_ranks())) {}

std::vector<Range> RingContext::ranges(int step) {
  const int cp_rank = place.cp_rank_of(step);
  Shard shard = grid.cp_rank_shard(cp_rank);
  counts_[static_cast<std::size_t>(cp_rank)] = {shard.tokens, shard.rows};
  return std::move(shard.ranges);
}

const RingContext::Counts& RingContext::counts_of(int cp_rank) {
  Counts& counts = counts_[static_cast<std::size_t>(cp_rank)];
  if (counts.rows < 0) {
    const Shard shard = grid.cp_rank_shard(cp_rank);
    counts = {shard.tokens, shard.rows};
  }
  return counts;
}

std::int64_t RingContext::max_rows() {
  std::int64_t max_rows = 0;
  for (int cp_rank = 0; cp_rank < grid.cp_ranks(); ++cp_rank) {
    max_rows = std::max(max_rows, counts_of(cp_rank).rows);
  }
  return max_rows;
}

Ring::Ring(const Grid& grid, int rank, int window_size, const HeadLayout& layout,
           HeadExchange& heads, PlanWriter& writer)
    : context_(grid, rank, window_size, layout, heads, writer),
      gradients_(std::make_unique<RingGradients>(context_)) {}

Ring::~Ring() = default;

std::vector<Range> Ring::ranges(int step, int) {
  return context_.ranges(step);
}

KeyPair Ring::rows(int step, int group, std::int64_t rows) {
  const RingCoordinates& place = context_.place;
  KeyPair own = {context_.heads.held({TensorRole::k, group}),
                 context_.heads.held({TensorRole::v, group})};
  if (step == 0) return rows_of_pair(own, {0, rows});
  const bool outer = place.step_of_round(step) == 0;
  const int round = place.round(step);
  const int which = (outer ? round : step - round - 1) % 2;  // alternates from pass to pass
  const auto in_buffer = [&](TensorRole role, const Region& like) -> Region {
    auto [it, is_new] = buffers_.try_emplace({role, outer, which, group}, 0);
    if (is_new) {
      it->second = context_.writer.add_buffer(
          {fmt::format("{} of the {} {}, group {}", to_string(role), outer ? "outer pass" : "pass",
                       which, group),
           role, context_.max_rows(), static_cast<int>(like.heads.size()), false, false, false});
    }
    return {it->second, {0, rows}, {0, like.heads.size()}};
  };
  return {in_buffer(TensorRole::k, own.k), in_buffer(TensorRole::v, own.v)};
}

KeyPair Ring::keys(int step, int, int group) {
  return rows(step, group, context_.tokens(step));
}

void Ring::pass(int from_step, int to_step, int to, int from) {
  const std::int64_t sent = context_.rows(from_step);
  const std::int64_t received = context_.rows(to_step);
  Exchange exchange{Pattern::send_receive, {}, {}};
  for (int group = 0; group < context_.groups; ++group) {
    if (sent > 0) {
      const KeyPair pair = rows(from_step, group, sent);
      exchange.sends.insert(exchange.sends.end(), {{to, pair.k}, {to, pair.v}});
    }
    if (received > 0) {
      const KeyPair pair = rows(to_step, group, received);
      exchange.receives.insert(exchange.receives.end(), {{from, pair.k}, {from, pair.v}});
    }
  }
  context_.writer.add(std::move(exchange), from_step);
}

void Ring::fetch(int step) {
  const RingCoordinates& place = context_.place;
  const int round = place.round(step);
  if (place.step_of_round(step) + 1 < place.size) {
    pass(step, step + 1, context_.peer(0, 1), context_.peer(0, -1));
  }
  if (place.step_of_round(step) == 0 && round + 1 < place.windows) {
    pass(step, step + place.size, context_.peer(1, 0), context_.peer(-1, 0));
  }
}

void Ring::begin_gradients(std::vector<KeyPair> own) {
  gradients_->begin(std::move(own));
}

GradientTarget& Ring::target(int step, int, int group) {
  return gradients_->target(step, group);
}

void Ring::before_gradients(int step) {
  gradients_->before(step);
}

void Ring::after_gradients(int step) {
  gradients_->after(step);
}

LateSums Ring::finish_gradients(const std::function<void()>& meanwhile) {
  return gradients_->finish(meanwhile);
}

}  // namespace longca
