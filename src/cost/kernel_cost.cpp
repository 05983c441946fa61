#include "cost/kernel_cost.h"

namespace longca::cost {

double flops_per_cell(int head_dim, int value_dim, Pass pass) {
  return 2.0 * (pass == Pass::forward ? head_dim + value_dim : 3 * head_dim + 2 * value_dim);
}

double flops_per_cell(const HeadShape& shape, Pass pass) {
  return flops_per_cell(shape.head_dim, shape.head_dim, pass) * shape.heads_q;
}

CallCost slice_call(const Platform& platform, const HeadShape& shape, Pass pass) {
  const double flops = flops_per_cell(shape, pass);
  if (pass == Pass::forward) {
    const ForwardRates& rates = platform.kernel.forward;
    return {flops / rates.tile_flops_per_second, rates.keys_per_row, rates.seconds_per_call};
  }
  const BackwardRates& rates = platform.kernel.backward;
  return {flops / rates.tile_flops_per_second, rates.keys_per_row, rates.seconds_per_call};
}

CallCost slice_half_heads_call(const Platform& platform, const HeadShape& shape) {
  CallCost half = slice_call(platform, shape, Pass::backward);
  half.seconds_per_call = platform.kernel.backward.seconds_per_half_heads_call;
  return half;
}

CallCost any_call(const Platform& platform, const HeadShape& shape) {
  const CallRates& rates = platform.kernel.any;
  return {flops_per_cell(shape, Pass::forward) / rates.flops_per_second, 0, rates.seconds_per_call};
}

double memory_seconds(const Platform& platform, double bytes) {
  return bytes / platform.memory.bytes_per_second;
}

double merge_seconds(const Platform& platform, const HeadShape& shape, double rows) {
  return memory_seconds(platform, 3 * shape.row_bytes()) * rows;
}

/// Every sum is read; for own keys the rounded value is also written.
double rounding_seconds(const Platform& platform, const HeadShape& shape, double own_keys,
                        double arriving_keys) {
  const double sum = shape.key_sum_bytes() / shape.key_bytes();
  return platform.kernel.any.seconds_per_call +
         ((sum + 1) * own_keys + sum * arriving_keys) * memory_seconds(platform, shape.key_bytes());
}

/// Written as a multiple of memory_seconds: the choice between plans of equal time depends on the
/// last bit of the result.
double row_term_seconds(const Platform& platform, const HeadShape& shape, double rows) {
  return 2 * memory_seconds(platform, shape.row_bytes()) * rows * platform.memory.bytes_per_second /
         platform.kernel.backward.row_term_bytes_per_second;
}

}  // namespace longca::cost
