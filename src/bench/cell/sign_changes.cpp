#include "bench/cell/sign_changes.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/error.h"

namespace longca {
namespace {

/// Puts `x` in, or takes it out if it is there.
template <typename T>
void toggle(std::set<T>& set, const T& x) {
  if (!set.insert(x).second) set.erase(x);
}

template <typename T>
std::set<T> symmetric_difference(const std::set<T>& a, const std::set<T>& b) {
  std::set<T> in_one;
  std::ranges::set_symmetric_difference(a, b, std::inserter(in_one, in_one.end()));
  return in_one;
}

}  // namespace

SignChanges::SignChanges(Device& device, const PassTensors& tensors, Pass pass,
                         std::vector<std::int64_t> heads_k, std::uint64_t seed)
    : device_(device), tensors_(tensors), pass_(pass), heads_k_(std::move(heads_k)), random_(seed) {
  LONGCA_CHECK(!heads_k_.empty(), "no head to change");
}

void SignChanges::draw() {
  State next{{drawn(tensors_.v)}, {drawn(tensors_.k)}};
  const bool same_scores = pass_ == Pass::forward || next.scores == state_.scores;
  if (next.values == state_.values && same_scores) toggle(next.values, *next.values.begin());
  change_to(std::move(next));
}

void SignChanges::draw_more() {
  State next = state_;
  const bool of_scores = pass_ != Pass::forward && random_() % 2 == 0;
  toggle(of_scores ? next.scores : next.values, drawn(of_scores ? tensors_.k : tensors_.v));
  change_to(std::move(next));
}

void SignChanges::undo() {
  change_to({});
}

void SignChanges::follow() {
  followed_ = state_;
  device_.negate(of_results(followed_));
}

void SignChanges::follow_back() const {
  device_.negate(of_results(followed_));
}

void SignChanges::catch_up() {
  device_.negate(of_results({symmetric_difference(followed_.values, state_.values),
                             symmetric_difference(followed_.scores, state_.scores)}));
  followed_ = state_;
}

SignChanges::Column SignChanges::drawn(const TensorView& of) {
  const auto one_of = [&](std::size_t count) {
    return std::uniform_int_distribution<std::size_t>(0, count - 1)(random_);
  };
  return {heads_k_[one_of(heads_k_.size())],
          static_cast<std::int64_t>(one_of(static_cast<std::size_t>(of.dim)))};
}

void SignChanges::change_to(State next) {
  const State changed{symmetric_difference(state_.values, next.values),
                      symmetric_difference(state_.scores, next.scores)};
  device_.negate(of_inputs(changed));
  state_ = std::move(next);
}

std::vector<HeadColumn> SignChanges::of_inputs(const State& columns) const {
  const std::int64_t group = tensors_.q.heads / tensors_.k.heads;
  std::vector<HeadColumn> all;
  for (const auto& [head, column] : columns.values) {
    all.push_back({tensors_.v, head, 1, column});
    if (pass_ == Pass::forward) continue;
    all.push_back({tensors_.dout, head * group, group, column});
    if (pass_ == Pass::backward) all.push_back({tensors_.o, head * group, group, column});
  }
  for (const auto& [head, column] : columns.scores) {
    all.push_back({tensors_.k, head, 1, column});
    all.push_back({tensors_.q, head * group, group, column});
  }
  return all;
}

std::vector<HeadColumn> SignChanges::of_results(const State& columns) const {
  const std::int64_t group = tensors_.q.heads / tensors_.k.heads;
  std::vector<HeadColumn> all;
  for (const auto& [head, column] : columns.values) {
    if (pass_ != Pass::forward) all.push_back({tensors_.dv, head, 1, column});
    if (pass_ != Pass::backward) all.push_back({tensors_.o, head * group, group, column});
  }
  if (pass_ == Pass::forward) return all;
  for (const auto& [head, column] : columns.scores) {
    all.push_back({tensors_.dk, head, 1, column});
    all.push_back({tensors_.dq, head * group, group, column});
  }
  return all;
}

}  // namespace longca
