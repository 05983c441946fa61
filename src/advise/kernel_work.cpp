#include "advise/kernel_work.h"

#include <utility>

#include "bench/cell/tensors.h"
#include "cost/kernel_cost.h"

namespace longca::advise {
namespace {

constexpr double kBytesOfKeyGradients = 4;  // an element of dK and one of dV, in 16 bits

/// Bytes that pass through memory because query heads share a KV head, whose dK and dV are summed
/// there. 16-bit ones of each query head are read once more than without sharing; float32 sums get
/// twice the bytes from each query head, and are read.
double sum_traffic(const BackwardBytes& bytes, const Case& c, const Work& work) {
  return c.head_dim * (work.rows * kBytesOfKeyGradients +
                       work.keys * (bytes.grouped_per_k + kBytesOfKeyGradients));
}

/// Without what kernels have to say of themselves.
IdleSlots in_order(IdleSlots idle) {
  idle.longest_rows = idle.group_gradients = 0;
  return idle;
}

bool takes_longest_first(const Capabilities& can, MaskForm form) {
  if (can.longest_first != LongestFirst::of_windows) {
    return can.longest_first == LongestFirst::always;
  }
  return form == MaskForm::causal || is_window(form);
}

/// How often cells of the mask are tested, if no argument of the kernel says it.
void count_tests(const Capabilities& can, Work& work) {
  if (!can.says_windows && is_window(work.form)) {
    work.form = MaskForm::other;
    work.tested_tiles = work.tiles.partial;
  }
  if (can.tests_each_interval) work.tested_tiles *= work.key_intervals;
}

/// Where block lists say the tiles. Of both passes, while the mask is at hand.
void count_own_tiles(const Capabilities& can, const Case& c, MaskFacts& masks, Work& work) {
  if (work.form != MaskForm::blocks || can.forward_tile.rows == 0) return;
  const double forward = masks.touched_tiles(c, can.forward_tile);
  const double backward = can.backward ? masks.touched_tiles(c, can.backward_tile) : 0;
  work.tiles = work.slice_tiles = {c.pass == Pass::forward ? forward : backward, 0};
}

/// Of a backward pass.
void divide_groups(const Capabilities& can, const Case& c, const MaskFacts& masks,
                   double idle_of_groups, Work& work) {
  if (can.group_gradients == GroupGradients::of_group) {
    work.idle = {.group_gradients = idle_of_groups};
  }
  if (can.group_gradients == GroupGradients::of_each_head && c.heads_q > c.heads_k) {
    work.known_ms =
        1e3 * sum_traffic(can.backward_bytes, c, work) / masks.platform().memory.bytes_per_second;
  }
}

/// At the rate of the card's page, which is that of fast kernels, so that it depends on the work
/// alone: others meet the limit later or never, which is left to the fit. A step is its longer
/// pass.
double slowed_by_power(const cost::Platform& platform, const Case& c, const Work& work) {
  if (c.device != "cuda") return 0;
  const bool forward = c.pass == Pass::forward;
  const cost::CallCost call =
      cost::slice_call(platform, {.heads_q = 1, .heads_k = 1, .head_dim = c.head_dim},
                       forward ? cost::Pass::forward : cost::Pass::backward);
  const double cells = (work.tiles.full + work.tiles.partial) * kWorkTile * kWorkTile;
  const cost::SliceCall& of = platform.call;
  return (forward ? of.forward.power : of.backward.power).reached(cells * call.seconds_per_cell);
}

/// Without what depends on how many tiles there are in the end.
Work divided_work(const Kernel* kernel, const Case& c, MaskFacts& masks) {
  Work work = masks.work(c);
  const PlannedCall planned = masks.planned(c);
  work.planned_ms = planned.ms;
  work.known_bytes = known_bytes(kernel, c, work) + planned.bytes;
  const IdleSlots every = std::exchange(work.idle, in_order(work.idle));
  const double empty_tile_rows = std::exchange(work.empty_tile_rows, 0);
  if (kernel == nullptr || c.pass == Pass::step) return work;
  const Capabilities& can = kernel->capabilities();
  work.own_path = can.looks_up_uneven_blocks && work.uneven_blocks;
  count_tests(can, work);
  if (can.launches_longest_document) work.empty_tile_rows = empty_tile_rows;
  if (c.pass == Pass::forward && takes_longest_first(can, work.form)) {
    work.idle.tile_rows = every.longest_rows;
  }
  count_own_tiles(can, c, masks, work);
  if (c.pass == Pass::forward) return work;
  divide_groups(can, c, masks, every.group_gradients, work);
  const bool all_tiles = can.computes_all_of_windows_backward && work.form == MaskForm::window;
  return all_tiles ? work.of_all_tiles() : work;
}

}  // namespace

double known_bytes(const Kernel* kernel, const Case& c, const Work& work) {
  const auto tensors = static_cast<double>(tensor_bytes(c.problem()));
  if (kernel == nullptr || c.pass == Pass::forward) return tensors;
  const BackwardBytes& bytes = kernel->capabilities().backward_bytes;
  const double rows = work.rows + work.documents * bytes.document_rows * c.heads_q;
  const double keys = work.keys + work.documents * bytes.document_keys * c.heads_k;
  double all = rows * (bytes.per_q * c.head_dim + bytes.per_row) + keys * bytes.per_k * c.head_dim;
  if (c.heads_q > c.heads_k) {
    const double packed = work.form == MaskForm::documents ? bytes.packed_per_q : 0;
    all += work.rows * (bytes.grouped_per_q + packed) * c.head_dim;
    all += keys * bytes.grouped_per_k * c.head_dim;
  }
  return tensors + all;
}

Work kernel_work(const Kernel* kernel, const Case& c, MaskFacts& masks) {
  Work work = divided_work(kernel, c, masks);
  work.slowed = slowed_by_power(masks.platform(), c, work);
  return work;
}

}  // namespace longca::advise
