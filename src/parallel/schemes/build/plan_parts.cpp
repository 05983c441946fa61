#include "parallel/schemes/build/plan_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "mask/mask_slice.h"
#include "parallel/plan/mask_heads.h"
#include "parallel/schemes/build/cast.h"
#include "parallel/schemes/build/ring.h"

namespace longca {
namespace {

std::unique_ptr<ContextExchange> make_context(PlanParts& parts, const Composition& composition,
                                              int rank) {
  const Grid& grid = parts.grid;
  if (composition.context == ContextKind::ring) {
    const int window = composition.window > 0 ? composition.window : grid.cp_ranks();
    return std::make_unique<Ring>(grid, rank, window, parts.layout, parts.heads, parts.writer);
  }
  const ParallelProblem& problem = parts.problem;
  Cast::Options options;
  options.by_owner = problem.shard == ShardKind::document_zigzag;
  if (composition.context == ContextKind::group_cast) {
    options.seen.emplace(problem.mask);
    const int node = relaying_node(problem, grid);
    options.stages = node > 1 ? relayed_stages(grid, *options.seen, node)
                              : stages_by_cost(problem, grid, *options.seen);
  } else {
    options.stages = doubling_stages(grid.cp_ranks());
  }
  const auto choose = [&](const CastTraffic& traffic) {
    return choose_joint_split(problem, parts.shard, *options.seen, traffic);
  };
  return std::make_unique<Cast>(grid, rank, options, choose, parts.layout, parts.heads,
                                parts.writer);
}

}  // namespace

PlanParts::PlanParts(const ParallelProblem& the_problem, const Composition& composition, int rank)
    : problem(the_problem),
      grid(problem, composition.shape),
      layout(problem.problem.heads_q, problem.problem.heads_k, composition.shape.head_ways),
      shard(grid.cp_rank_shard(grid.cp_rank(rank))),
      writer(rank, problem.ranks),
      heads(problem, grid, layout, rank, writer),
      context(make_context(*this, composition, rank)),
      member_(grid.member(rank)) {
  cut();
}

/// Plans of a single step are not cut: their results have the problem's dtype, to which a second
/// call could not add.
std::int64_t PlanParts::min_gap(std::int64_t heads_q) const {
  if (context->steps() == 1) return kNoLimit;
  if (problem.min_gap > 0) return problem.min_gap;
  cost::HeadShape shape = problem.shape();
  shape.heads_q = static_cast<int>(heads_q);
  return min_gap_of(*problem.platform, shape);
}

void PlanParts::cut() {
  std::vector<Cutter> cutters;
  const bool per_head = problem.mask.blocks() != nullptr;
  for (int chunk = 0; chunk < (per_head ? chunks() : 1); ++chunk) {
    const Range of_chunk =
        layout.q_heads(member_, layout.chunks()[static_cast<std::size_t>(chunk)]);
    cutters.emplace_back(heads_of(problem.mask, static_cast<int>(of_chunk.begin),
                                  static_cast<int>(of_chunk.size()), problem.problem.heads_q),
                         shard.ranges, min_gap(of_chunk.size()));
  }
  if (const JointSplit* split = context->joint_split()) {
    row_cutter_ = std::move(cutters.front());
    return cut_rows(split->forward);
  }
  for (int step = 0; step < context->steps(); ++step) {
    auto& of_step = work_.emplace_back(cutters.size());
    for (int block = 0; block < context->blocks(step); ++block) {
      const std::vector<Range> keys = context->ranges(step, block);
      for (std::size_t i = 0; i < cutters.size(); ++i) {
        for (Piece& piece : cutters[i].cut(keys)) {
          of_step[i].push_back(
              {block, piece.rows, piece.keys, writer.add_mask(std::move(piece.mask))});
        }
      }
    }
  }
}

void PlanParts::begin_backward() {
  writer.begin_backward();
  if (const JointSplit* split = context->joint_split()) cut_rows(split->backward);
}

void PlanParts::cut_rows(const JointSplit::Rows& split) {
  const auto cut_all = [&](int step, const std::vector<Range>& rows, bool late,
                           std::vector<Work>& all) {
    for (const Range range : rows) {
      const auto [known, is_new] = calls_on_rows_.try_emplace({step, range.begin, range.end});
      if (is_new) {
        for (Piece& piece : row_cutter_->cut_rows(range, context->ranges(step, 0))) {
          known->second.push_back(
              {0, piece.rows, piece.keys, writer.add_mask(std::move(piece.mask))});
        }
      }
      for (Work work : known->second) {
        work.late = late;
        all.push_back(work);
      }
    }
  };
  std::vector<Work> alone, joint;
  cut_all(0, split.before, false, alone);
  cut_all(0, split.after, true, alone);
  if (context->blocks(1) > 0) cut_all(1, split.joint, false, joint);
  std::vector<Range> needed;
  for (const Work& work : joint) needed.push_back(work.keys);
  join_ranges(needed);
  context->need_joint_keys(needed);
  const std::vector<Range> shared = context->shared_keys();
  for (Work& work : alone) {
    const auto meets = [&](Range rows) { return !intersect(rows, work.keys).empty(); };
    work.has_keys_alone =
        std::ranges::none_of(shared, meets) && std::ranges::none_of(alone, [&](const Work& other) {
          return &other != &work && meets(other.keys);
        });
  }
  work_ = {{std::move(alone)}, {std::move(joint)}};
}

Region PlanParts::result(HeadPart part, bool float32) {
  Region region = heads.held(part);
  region.tokens = {0, shard.tokens};
  if (!float32) return region;
  const int buffer = writer.add_buffer(
      {fmt::format("sum of {}, chunk {}", to_string(part.role), part.index), part.role,
       shard.tokens, static_cast<int>(region.heads.size()), true, false, false});
  return {buffer, region.tokens, {0, region.heads.size()}};
}

bool begins(PlanWriter& writer, Coverage& coverage, Range rows, std::span<const Region> results,
            int step) {
  const std::vector<Range> fresh = coverage.add(rows);
  if (fresh == std::vector<Range>{rows}) return true;
  for (const Range part : fresh) {
    for (const Region& result : results) writer.add(Clear{with_rows(result, part)}, step);
  }
  return false;
}

void clear_gaps(PlanWriter& writer, const Coverage& coverage, std::span<const Region> results,
                int step) {
  for (const Range gap : coverage.gaps({0, results.front().tokens.size()})) {
    for (const Region& result : results) writer.add(Clear{with_rows(result, gap)}, step);
  }
}

}  // namespace longca
