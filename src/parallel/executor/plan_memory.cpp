#include "parallel/executor/plan_memory.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "parallel/executor/op_analysis.h"

namespace longca {
namespace {

/// Which passes use a buffer, and whether messages do.
struct Use {
  bool forward = false, backward = false;
  bool message = false;
  bool any() const { return forward || backward; }
};

std::vector<Use> find_uses(const RankPlan& plan) {
  std::vector<Use> uses(plan.buffers.size());
  const auto look = [&](const std::vector<Op>& ops, bool Use::*pass) {
    for (const Op& op : ops) {
      const bool message = std::holds_alternative<Exchange>(op.what);
      const OpRegions regions = regions_of(op);
      for (const auto* list : {&regions.read, &regions.written}) {
        for (const Region& region : *list) {
          Use& use = uses[static_cast<std::size_t>(region.buffer)];
          use.*pass = true;
          use.message |= message;
        }
      }
    }
  };
  look(plan.forward, &Use::forward);
  look(plan.backward, &Use::backward);
  // A buffer that outlives its pass must not share memory with the other pass.
  for (std::size_t i = 0; i < uses.size(); ++i) {
    if (plan.buffers[i].kept) uses[i].forward = uses[i].backward = true;
  }
  for (const Placement& placement : plan.results) {
    Use& use = uses[static_cast<std::size_t>(placement.region.buffer)];
    use.forward = use.backward = true;
  }
  return uses;
}

/// Offsets of buffers in one allocation: first the buffers of both passes, then, overlapping, those
/// of the forward and those of the backward pass.
class Layout {
 public:
  void add(int buffer, std::int64_t bytes, const Use& use) {
    const int life = use.forward && use.backward ? 0 : use.forward ? 1 : 2;
    std::int64_t& end = ends_[static_cast<std::size_t>(life)];
    placed_.push_back({buffer, life, end});
    end += aligned(bytes);
  }
  std::int64_t bytes() const { return ends_[0] + std::max(ends_[1], ends_[2]); }
  template <typename Place>
  void place(void* memory, Place&& place) const {
    for (const Placed& p : placed_) {
      place(p.buffer, static_cast<std::byte*>(memory) + (p.life == 0 ? 0 : ends_[0]) + p.offset);
    }
  }

 private:
  struct Placed {
    int buffer;
    int life;
    std::int64_t offset;
  };
  std::vector<Placed> placed_;
  std::array<std::int64_t, 3> ends_{};  ///< both passes, forward, backward
};

const TensorView& tensor_of(const RankTensors& tensors, TensorRole role) {
  switch (role) {
    case TensorRole::q:
      return tensors.q;
    case TensorRole::k:
      return tensors.k;
    case TensorRole::v:
      return tensors.v;
    case TensorRole::o:
      return tensors.o;
    case TensorRole::dout:
      return tensors.dout;
    case TensorRole::dq:
      return tensors.dq;
    case TensorRole::dk:
      return tensors.dk;
    case TensorRole::dv:
      return tensors.dv;
    case TensorRole::lse:
      break;
  }
  throw_internal_error(__FILE__, __LINE__, "role", "lse is no tensor");
}

}  // namespace

PlanMemory::PlanMemory(const RankPlan& plan, const Problem& problem, const RankTensors& tensors,
                       Communicator& communicator)
    : plan_(plan),
      problem_(problem),
      sink_(tensors.sink),
      dsink_(tensors.dsink),
      tensors_(plan.buffers.size()),
      lses_(plan.buffers.size()) {
  LONGCA_CHECK(!problem.sink || (sink_ != nullptr && (dsink_ != nullptr || !problem.backward)),
               "a problem with sinks, and none given");
  const std::vector<Use> uses = find_uses(plan);
  Layout messages, own;
  for (std::size_t i = 0; i < plan.buffers.size(); ++i) {
    const int index = static_cast<int>(i);
    place(index, nullptr);
    if (plan.buffers[i].external || !uses[i].any()) continue;
    const std::int64_t bytes =
        region_bytes(plan, plan.whole(index), problem.head_dim, problem.dtype);
    (uses[i].message ? messages : own).add(index, bytes, uses[i]);
  }
  bytes_ = messages.bytes() + own.bytes();
  const auto set = [&](int buffer, void* data) { place(buffer, data); };
  messages.place(communicator.allocate(messages.bytes()), set);
  own_ = Buffer(Device::get(problem.device).memory(), own.bytes());
  own.place(own_.data(), set);
  bind(tensors);
}

void PlanMemory::place(int buffer, void* data) {
  const PlanBuffer& b = plan_.buffers[static_cast<std::size_t>(buffer)];
  if (b.role == TensorRole::lse) {
    lses_[static_cast<std::size_t>(buffer)] = {static_cast<float*>(data), b.heads, b.tokens,
                                               b.tokens};
    return;
  }
  const DType dtype = b.float32 ? DType::float32 : problem_.dtype;
  const std::int64_t dim = problem_.head_dim;
  tensors_[static_cast<std::size_t>(buffer)] = {data, dtype,         b.tokens, b.heads,
                                                dim,  b.heads * dim, dim};
}

void PlanMemory::bind(const RankTensors& tensors) {
  for (std::size_t i = 0; i < plan_.buffers.size(); ++i) {
    const PlanBuffer& buffer = plan_.buffers[i];
    if (!buffer.external) continue;
    if (buffer.role == TensorRole::lse) {
      const LseView& given = tensors.lse;
      LONGCA_CHECK(!given.data || (given.heads == buffer.heads && given.tokens == buffer.tokens),
                   "the lse given is [{}, {}], the plan's [{}, {}]", given.heads, given.tokens,
                   buffer.heads, buffer.tokens);
      if (given.data) lses_[i] = given;
      continue;
    }
    const TensorView& given = tensor_of(tensors, buffer.role);
    LONGCA_CHECK(!given.data || (given.tokens == buffer.tokens && given.heads == buffer.heads &&
                                 given.dim == problem_.head_dim && given.dtype == problem_.dtype),
                 "the {} given is [{}, {}, {}] of {}, the plan's [{}, {}, {}] of {}",
                 to_string(buffer.role), given.tokens, given.heads, given.dim,
                 to_string(given.dtype), buffer.tokens, buffer.heads, problem_.head_dim,
                 to_string(problem_.dtype));
    if (given.data) tensors_[i] = given;
  }
}

bool PlanMemory::is_lse(const Region& region) const {
  return plan_.buffers[static_cast<std::size_t>(region.buffer)].role == TensorRole::lse;
}

TensorView PlanMemory::tensor(const Region& region) const {
  TensorView view = tensors_[static_cast<std::size_t>(region.buffer)];
  LONGCA_CHECK(!is_lse(region) && region.tokens.begin >= 0 && region.tokens.end <= view.tokens &&
                   region.heads.begin >= 0 && region.heads.end <= view.heads,
               "tokens [{}, {}) and heads [{}, {}) of buffer {}, a tensor of {} and {}",
               region.tokens.begin, region.tokens.end, region.heads.begin, region.heads.end,
               region.buffer, view.tokens, view.heads);
  view.tokens = region.tokens.size();
  view.heads = region.heads.size();
  LONGCA_CHECK(view.data || view.tokens * view.heads == 0, "buffer {} was given no memory",
               region.buffer);
  const std::int64_t skipped =
      region.tokens.begin * view.token_stride + region.heads.begin * view.head_stride;
  view.data = static_cast<std::byte*>(view.data) + skipped * size_of(view.dtype);
  return view;
}

LseView PlanMemory::lse(const Region& region) const {
  LseView view = lses_[static_cast<std::size_t>(region.buffer)];
  LONGCA_CHECK(is_lse(region) && region.tokens.begin >= 0 && region.tokens.end <= view.tokens &&
                   region.heads.begin >= 0 && region.heads.end <= view.heads,
               "tokens [{}, {}) and heads [{}, {}) of buffer {}, an lse of {} and {}",
               region.tokens.begin, region.tokens.end, region.heads.begin, region.heads.end,
               region.buffer, view.tokens, view.heads);
  view.tokens = region.tokens.size();
  view.heads = region.heads.size();
  LONGCA_CHECK(view.data || view.tokens * view.heads == 0, "buffer {} was given no memory",
               region.buffer);
  view.data += region.heads.begin * view.head_stride + region.tokens.begin;
  return view;
}

void PlanMemory::append(const Region& region, OpViews& views) const {
  if (is_lse(region)) {
    views.lses.push_back(lse(region));
  } else {
    views.tensors.push_back(tensor(region));
  }
}

OpViews PlanMemory::views(const Op& op) const {
  OpViews views;
  const auto all = [&](std::initializer_list<const Region*> regions) {
    for (const Region* region : regions) append(*region, views);
  };
  if (const auto* a = std::get_if<Attend>(&op.what)) {
    all({&a->q, &a->k, &a->v, &a->o, &a->lse});
    if (problem_.sink && a->first) views.sink = sink_ + a->first_head;
  } else if (const auto* b = std::get_if<AttendBackward>(&op.what)) {
    all({&b->dout, &b->q, &b->k, &b->v, &b->o, &b->lse, &b->dq, &b->dk, &b->dv});
  } else if (const auto* copy = std::get_if<Copy>(&op.what)) {
    all({&copy->from, &copy->to});
  } else if (const auto* add = std::get_if<Add>(&op.what)) {
    all({&add->from, &add->into});
  } else if (const auto* convert = std::get_if<Convert>(&op.what)) {
    all({&convert->from, &convert->to});
  } else if (const auto* total = std::get_if<Total>(&op.what)) {
    all({&total->to});
    for (const Total::Part& part : total->parts) append(part.from, views);
  } else if (const auto* clear = std::get_if<Clear>(&op.what)) {
    all({&clear->region});
  } else if (const auto* join = std::get_if<JoinSinks>(&op.what)) {
    all({&join->o, &join->lse});
    views.sink = sink_ + join->first_head;
  } else if (const auto* gradients = std::get_if<SinkGradients>(&op.what)) {
    all({&gradients->dout, &gradients->o, &gradients->lse});
    views.sink = sink_ + gradients->first_head;
    views.dsink = dsink_ + gradients->first_head;
  }
  return views;
}

Transfer PlanMemory::transfer(const Message& message) const {
  LONGCA_CHECK(message.peer != plan_.rank && message.peer >= 0 && message.peer < plan_.ranks,
               "a message of rank {} of {} with rank {}", plan_.rank, plan_.ranks, message.peer);
  if (is_lse(message.region)) {
    const LseView view = lse(message.region);
    return {message.peer, view.data, view.heads, view.tokens * 4, view.head_stride * 4};
  }
  const TensorView view = tensor(message.region);
  LONGCA_CHECK(view.head_stride == view.dim, "the heads of a message have gaps between them");
  const std::int64_t size = size_of(view.dtype);
  return {message.peer, view.data, view.tokens, view.heads * view.dim * size,
          view.token_stride * size};
}

TransferGroup PlanMemory::transfers(const Exchange& exchange) const {
  TransferGroup group{exchange.pattern, {}, {}};
  const auto append_all = [&](const std::vector<Message>& messages, std::vector<Transfer>& out) {
    for (const Message& message : messages) {
      const Transfer t = transfer(message);
      if (t.bytes() > 0) out.push_back(t);
    }
  };
  append_all(exchange.sends, group.sends);
  append_all(exchange.receives, group.receives);
  return group;
}

}  // namespace longca
