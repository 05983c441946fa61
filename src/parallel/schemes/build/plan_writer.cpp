#include "parallel/schemes/build/plan_writer.h"

#include <algorithm>

#include "core/error.h"
#include "mask/mask_slice.h"

namespace longca {
namespace {

bool share_elements(const Region& a, const Region& b) {
  return !intersect(a.tokens, b.tokens).empty() && !intersect(a.heads, b.heads).empty();
}

bool is_empty(const Region& region) {
  return region.tokens.empty() || region.heads.empty();
}

}  // namespace

Region with_rows(Region region, Range rows) {
  region.tokens = {region.tokens.begin + rows.begin, region.tokens.begin + rows.end};
  return region;
}

PlanWriter::PlanWriter(int rank, int ranks) : ops_(&plan_.forward) {
  plan_.rank = rank;
  plan_.ranks = ranks;
}

int PlanWriter::add_buffer(PlanBuffer buffer) {
  plan_.buffers.push_back(std::move(buffer));
  accesses_.emplace_back();
  return static_cast<int>(plan_.buffers.size()) - 1;
}

int PlanWriter::add_mask(Mask mask) {
  plan_.masks.push_back(std::move(mask));
  return static_cast<int>(plan_.masks.size()) - 1;
}

void PlanWriter::begin_backward() {
  ops_ = &plan_.backward;
  for (auto& lanes : accesses_) lanes = {};
  waited_ = {-1, -1};
}

void PlanWriter::add(Exchange exchange, int step) {
  if (exchange.sends.empty() && exchange.receives.empty()) return;
  std::vector<Use> uses;
  for (const Message& message : exchange.sends) uses.push_back({message.region, false});
  for (const Message& message : exchange.receives) uses.push_back({message.region, true});
  append({std::move(exchange), {}, Lane::communication, step}, uses);
}

void PlanWriter::add(Attend a, int step) {
  append({a, {}, Lane::compute, step},
         {{a.q, false}, {a.k, false}, {a.v, false}, {a.o, true}, {a.lse, true}});
}

void PlanWriter::add(AttendBackward a, int step) {
  append({a, {}, Lane::compute, step}, {{a.dout, false},
                                        {a.q, false},
                                        {a.k, false},
                                        {a.v, false},
                                        {a.o, false},
                                        {a.lse, false},
                                        {a.dq, true},
                                        {a.dk, true},
                                        {a.dv, true}});
}

void PlanWriter::add(Add add, int step) {
  if (is_empty(add.from)) return;
  append({add, {}, Lane::compute, step}, {{add.from, false}, {add.into, true}});
}

void PlanWriter::add(Convert convert, int step) {
  if (is_empty(convert.from)) return;
  append({convert, {}, Lane::compute, step}, {{convert.from, false}, {convert.to, true}});
}

void PlanWriter::add(Total total, int step) {
  if (is_empty(total.to)) return;
  std::vector<Use> uses = {{total.to, true}};
  for (const Total::Part& part : total.parts) uses.push_back({part.from, true});
  append({std::move(total), {}, Lane::compute, step}, uses);
}

void PlanWriter::add(Copy copy, int step) {
  if (is_empty(copy.from)) return;
  append({copy, {}, Lane::compute, step}, {{copy.from, false}, {copy.to, true}});
}

void PlanWriter::add(Clear clear, int step) {
  if (is_empty(clear.region)) return;
  append({clear, {}, Lane::compute, step}, {{clear.region, true}});
}

void PlanWriter::add(JoinSinks join, int step) {
  if (is_empty(join.o)) return;
  append({join, {}, Lane::compute, step}, {{join.o, true}, {join.lse, true}});
}

void PlanWriter::add(SinkGradients g, int step) {
  append({g, {}, Lane::compute, step}, {{g.dout, false}, {g.o, false}, {g.lse, false}});
}

int PlanWriter::last_conflict(const Use& use, std::size_t other_lane, int known) const {
  const auto& all = accesses_[static_cast<std::size_t>(use.region.buffer)][other_lane];
  for (auto it = all.rbegin(); it != all.rend() && it->op > known; ++it) {
    if ((use.writes || it->writes) && share_elements(use.region, it->region)) return it->op;
  }
  return known;
}

void PlanWriter::append(Op op, const std::vector<Use>& uses) {
  const auto lane = static_cast<std::size_t>(op.lane);
  int last = waited_[lane];
  for (const Use& use : uses) last = last_conflict(use, 1 - lane, last);
  if (last > waited_[lane]) {
    op.after = {last};
    waited_[lane] = last;
  }
  const int number = static_cast<int>(ops_->size());
  for (const Use& use : uses) {
    accesses_[static_cast<std::size_t>(use.region.buffer)][lane].push_back(
        {number, use.writes, use.region});
  }
  ops_->push_back(std::move(op));
}

}  // namespace longca
