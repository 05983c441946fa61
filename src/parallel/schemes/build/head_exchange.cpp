#include "parallel/schemes/build/head_exchange.h"

#include <fmt/format.h>

#include "core/error.h"

namespace longca {
namespace {

bool of_keys(TensorRole role) {
  return role == TensorRole::k || role == TensorRole::v || role == TensorRole::dk ||
         role == TensorRole::dv;
}

/// Whether the backward pass reads this buffer of the forward pass.
bool read_again(TensorRole role) {
  return role == TensorRole::q || role == TensorRole::k || role == TensorRole::v ||
         role == TensorRole::o || role == TensorRole::lse;
}

Region heads_within(Region whole, Range heads) {
  return {whole.buffer, whole.tokens, heads};
}

}  // namespace

HeadExchange::HeadExchange(const ParallelProblem& problem, const Grid& grid,
                           const HeadLayout& layout, int rank, PlanWriter& writer)
    : problem_(problem),
      grid_(grid),
      layout_(layout),
      writer_(writer),
      cp_rank_(grid.cp_rank(rank)),
      member_(grid.member(rank)),
      shard_(grid.cp_rank_shard(cp_rank_)),
      own_(grid.own_shard(rank)) {
  using enum TensorRole;
  for (const TensorRole role : {q, k, v, o}) external(role);
  if (layout.ways() == 1) external(lse);
  if (!problem.problem.backward) return;
  for (const TensorRole role : {dout, dq, dk, dv}) external(role);
}

Region HeadExchange::external(TensorRole role) {
  const int heads = of_keys(role) ? problem_.problem.heads_k : problem_.problem.heads_q;
  auto [it, is_new] = externals_.try_emplace(role, 0);
  if (is_new) {
    it->second = writer_.add_buffer(
        {std::string(to_string(role)), role, own_.rows, heads, false, true, false});
  }
  return {it->second, {0, own_.rows}, {0, heads}};
}

Range HeadExchange::heads_of(HeadPart part, int member) const {
  if (of_keys(part.role)) return layout_.kv_heads(member, part.index);
  return layout_.q_heads(member, layout_.chunks()[static_cast<std::size_t>(part.index)]);
}

Region HeadExchange::held(HeadPart part) {
  if (layout_.ways() == 1) return external(part.role);
  const int heads = static_cast<int>(heads_of(part, member_).size());
  auto [it, is_new] = parts_.try_emplace({part.role, part.index}, 0);
  if (is_new) {
    const bool kept = problem_.problem.backward && read_again(part.role);
    it->second =
        writer_.add_buffer({fmt::format("{} of chunk {}", to_string(part.role), part.index),
                            part.role, shard_.rows, heads, false, false, kept});
  }
  return {it->second, {0, shard_.rows}, {0, heads}};
}

template <typename Move>
void HeadExchange::exchange(std::span<const HeadPart> parts, int step, Move&& move) {
  if (layout_.ways() == 1) return;
  const std::vector<MemberRun> own_runs = runs(member_, move.pads);
  Exchange all_to_all{Pattern::all_to_all, {}, {}};
  // Each member starts with the next one, so that they do not all send to the same one first.
  for (int i = 1; i < layout_.ways(); ++i) {
    const int other = (member_ + i) % layout_.ways();
    const int peer = grid_.rank(cp_rank_, other);
    for (const HeadPart part : parts) {
      const Region outside = heads_within(external(part.role), heads_of(part, other));
      for (const MemberRun& run : own_runs) {
        move.outside(all_to_all).push_back({peer, with_rows(outside, run.own)});
      }
      for (const MemberRun& run : runs(other, move.pads)) {
        move.inside(all_to_all).push_back({peer, with_rows(held(part), run.cp_rank)});
      }
    }
  }
  writer_.add(std::move(all_to_all), step);
}

template <typename Move>
std::vector<Copy> HeadExchange::own_copies(std::span<const HeadPart> parts, Move&& move) {
  if (layout_.ways() == 1) return {};
  std::vector<Copy> copies;
  for (const HeadPart part : parts) {
    const Region outside = heads_within(external(part.role), heads_of(part, member_));
    for (const MemberRun& run : runs(member_, move.pads)) {
      copies.push_back(move.copy(with_rows(outside, run.own), with_rows(held(part), run.cp_rank)));
    }
  }
  return copies;
}

void HeadExchange::bring_in(std::span<const std::vector<HeadPart>> exchanges, int step) {
  struct In {
    bool pads = true;
    static std::vector<Message>& outside(Exchange& e) { return e.sends; }
    static std::vector<Message>& inside(Exchange& e) { return e.receives; }
    static Copy copy(const Region& outside, const Region& inside) { return {outside, inside}; }
  };
  for (const std::vector<HeadPart>& parts : exchanges) exchange(parts, step, In());
  for (const std::vector<HeadPart>& parts : exchanges) {
    for (const Copy& copy : own_copies(parts, In())) writer_.add(copy, step);
  }
}

void HeadExchange::send_out(std::span<const HeadPart> parts, int step) {
  struct Out {
    bool pads = false;
    static std::vector<Message>& outside(Exchange& e) { return e.receives; }
    static std::vector<Message>& inside(Exchange& e) { return e.sends; }
    static Copy copy(const Region& outside, const Region& inside) { return {inside, outside}; }
  };
  exchange(parts, step, Out());
  for (const Copy& copy : own_copies(parts, Out())) late_copies_.push_back({copy, step});
}

void HeadExchange::end_pass() {
  for (const LateCopy& late : late_copies_) writer_.add(late.copy, late.step);
  late_copies_.clear();
}

std::vector<MemberRun> HeadExchange::runs(int member, bool pads) const {
  std::vector<MemberRun> runs = grid_.runs(shard_, member);
  if (!pads) {
    std::erase_if(runs, [&](const MemberRun& run) { return run.cp_rank.end > shard_.tokens; });
  }
  return runs;
}

void HeadExchange::add_up(std::span<const std::pair<TensorRole, Region>> partials, int group,
                          int step) {
  LONGCA_CHECK(layout_.replicas() > 1, "partial dk of {} members", layout_.replicas());
  const std::vector<MemberRun> own_runs = runs(member_, false);
  Exchange all_to_all{Pattern::all_to_all, {}, {}};
  std::vector<Copy> copies;
  std::vector<std::vector<Region>> sums;  // per role and replica: [own rows, all KV heads]
  for (const auto& [role, partial] : partials) {
    auto& of_role = sums.emplace_back();
    const int heads = problem_.problem.heads_k;
    for (int i = 0; i < layout_.replicas(); ++i) {
      const int buffer = writer_.add_buffer({fmt::format("{} of replica {}", to_string(role), i),
                                             role, own_.rows, heads, true, false, false});
      of_role.push_back({buffer, {0, own_.rows}, {0, heads}});
    }
    for (int i = 0; i < layout_.ways(); ++i) {
      const int other = (member_ + i) % layout_.ways();
      const int peer = grid_.rank(cp_rank_, other);
      const auto replica = static_cast<std::size_t>(other % layout_.replicas());
      const Region into = heads_within(of_role[replica], layout_.kv_heads(other, group));
      for (const MemberRun& run : own_runs) {
        if (i > 0) all_to_all.receives.push_back({peer, with_rows(into, run.own)});
        if (i == 0) copies.push_back({with_rows(partial, run.cp_rank), with_rows(into, run.own)});
      }
      if (i == 0) continue;
      for (const MemberRun& run : runs(other, false)) {
        all_to_all.sends.push_back({peer, with_rows(partial, run.cp_rank)});
      }
    }
  }
  writer_.add(std::move(all_to_all), step);
  for (const Copy& copy : copies) writer_.add(copy, step);
  for (std::size_t i = 0; i < partials.size(); ++i) {
    const Range tokens = {0, own_.tokens};
    const Region sum = with_rows(sums[i].front(), tokens);
    for (std::size_t replica = 1; replica < sums[i].size(); ++replica) {
      writer_.add(Add{with_rows(sums[i][replica], tokens), sum}, step);
    }
    writer_.add(Convert{sum, with_rows(external(partials[i].first), tokens)}, step);
  }
}

void HeadExchange::place(TensorRole role) {
  if (role != TensorRole::lse || layout_.ways() == 1) {
    const Region whole = external(role);
    writer_.add_result({role, with_rows(whole, {0, own_.tokens}), own_.ranges, whole.heads});
    return;
  }
  for (int chunk = 0; chunk < static_cast<int>(layout_.chunks().size()); ++chunk) {
    const HeadPart part{role, chunk};
    writer_.add_result(
        {role, with_rows(held(part), {0, shard_.tokens}), shard_.ranges, heads_of(part, member_)});
  }
}

}  // namespace longca
