#include "parallel/schemes/build/build_plan.h"

#include <fmt/format.h>

#include "core/error.h"
#include "parallel/schemes/build/cast_stages.h"
#include "parallel/schemes/build/plan_parts.h"

namespace longca {

RankPlan build_plan(const ParallelProblem& problem, const Composition& composition, int rank) {
  LONGCA_CHECK(rank >= 0 && rank < problem.ranks, "rank {} of {}", rank, problem.ranks);
  PlanParts parts(problem, composition, rank);
  write_forward(parts);
  if (problem.problem.backward) write_backward(parts);
  if (parts.layout.replicas() > 1) {
    parts.writer.add_note(fmt::format("each KV head is held by {} ranks", parts.layout.replicas()));
  }
  if (parts.chunks() > 1) {
    parts.writer.add_note(fmt::format("heads travel in {} chunks", parts.chunks()));
  }
  if (composition.context != ContextKind::ring && problem.ranks > 1) {
    parts.writer.add_note(fmt::format("stages: {}", parts.context->steps() - 1));
  }
  if (composition.context == ContextKind::group_cast) {
    const int node = relaying_node(problem, parts.grid);
    if (node > 1)
      parts.writer.add_note(fmt::format("keys cross into nodes of {} ranks once", node));
  }
  return parts.writer.take();
}

}  // namespace longca
