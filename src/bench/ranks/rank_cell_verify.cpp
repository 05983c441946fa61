#include <vector>

#include "bench/cell_notes.h"
#include "bench/ranks/agreement.h"
#include "bench/ranks/gather_results.h"
#include "bench/ranks/rank_cell.h"

namespace longca {

/// Results are large, and verification reads some of their heads; a dump all.
CheckedHeads RankCell::heads_to_gather() const {
  if (!options_.dump) return shared_.reference->checked_heads();
  return {{{0, problem_.heads_q}}, {{0, problem_.heads_k}}};
}

void RankCell::verify(Pass pass) {
  stage_("verify");
  memory_->pause();
  // The gradients of drawn keys are computed from the o and lse that the ranks got.
  const bool forward_missing = pass == Pass::forward || !holds_whole_;
  together("verify", [&]() -> Status {
    if (!is_root()) return {};
    if (!holds_whole_) whole_ = Outputs::for_problem(problem_);
    if (forward_missing) whole_.poison_forward();
    if (pass == Pass::backward) whole_.poison_backward();
    return {};
  });
  holds_whole_ = true;
  std::vector<TensorRole> roles;
  if (forward_missing) roles = {TensorRole::o, TensorRole::lse};
  if (pass == Pass::backward) {
    roles.insert(roles.end(), {TensorRole::dq, TensorRole::dk, TensorRole::dv});
  }
  gather_results(team_.control, device(), plan_, *executor_, roles, checked_,
                 is_root() ? &whole_ : nullptr);
  together("verify", [&]() -> Status {
    if (is_root()) compare(pass);
    return {};
  });
  const bool still_ok = team_.control.broadcast(record_.status.ok() ? 1.0 : 0.0) > 0;
  if (!is_root() && !still_ok) record_.status = {StatusCode::wrong, "rank 0 says why"};
  memory_->resume();
}

void RankCell::compare(Pass pass) {
  const bool forward = pass == Pass::forward;
  Verdict verdict;
  if (forward) {
    const ConstLseView lse(whole_.lse.view());
    const bool has_lse = kernel_.capabilities().returns_lse;
    if (!has_lse) record_.notes["lse"] = "not returned";
    verdict = shared_.reference->check_forward(whole_.o.view(), has_lse ? &lse : nullptr);
  } else {
    BackwardArgs args = whole_.backward_args(shared_.inputs);
    if (!kernel_.capabilities().returns_lse) args.lse.data = nullptr;
    verdict = shared_.reference->check_backward(args);
  }
  note_verdict(verdict, record_);
  if (verdict.ok || !record_.status.ok()) return;
  const bool own_forward = forward && problem_.backward;
  record_.status = {StatusCode::wrong,
                    (own_forward ? "its own forward pass: " : "") + verdict.reason};
}

}  // namespace longca
