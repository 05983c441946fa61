#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "attention/reference/cuda/passes.h"
#include "attention/reference/passes.h"
#include "attention/reference/selection.h"
#include "core/device.h"
#include "core/memory.h"

namespace longca {

/// The reference's values for some KV heads and all their query heads, in device memory, with the
/// figures of their tiles on the host. Each part is computed when first asked for; the memory is
/// taken at once.
class DeviceResults {
 public:
  /// Throws InputError for a head dimension that the passes do not take, or a GPU whose blocks have
  /// too little shared memory for them.
  DeviceResults(const ReferenceProblem& problem, const std::vector<int>& heads_k);

  struct Output {
    Buffer values;                      ///< [slots, tokens, dim] float32
    Buffer device_figures;              ///< [slots, tiles] TileFigure
    std::vector<TileFigure> figures;    ///< the same on the host
    std::span<const int> heads;         ///< of the slots
    const int* device_heads = nullptr;  ///< the same on the device
    std::int64_t tokens = 0;

    std::int64_t tiles() const { return tile_count(tokens); }
  };

  void compute_forward();
  void compute_gradients();

  const Output& o() const { return o_; }
  const Output& dq() const { return dq_; }
  const Output& dk() const { return dk_; }
  const Output& dv() const { return dv_; }
  /// [query slots, tokens_q], on the host.
  const std::vector<RowStatistic>& rows() const { return host_rows_; }
  const std::vector<int>& heads_q() const { return heads_q_; }
  const std::vector<int>& heads_k() const { return heads_k_; }

  std::int64_t bytes() const { return bytes_; }
  static std::int64_t bytes_for(const Problem& problem, const Mask& mask, std::int64_t heads_k);

 private:
  struct Lists {
    Buffer list_of, list_offsets, intervals, run_offsets, runs, order;
    DeviceIntervals view() const;
  };

  Buffer allocate(std::int64_t bytes);
  template <typename T>
  Buffer upload(const std::vector<T>& values);
  Lists upload_lists(const IntervalLists& lists);
  Output make_output(std::span<const int> heads, const Buffer& device_heads, std::int64_t tokens);
  PassArgs arguments(ReferencePass pass) const;
  void compute(ReferencePass pass, Output& output);

  const ReferenceProblem& problem_;
  Device& device_;
  std::int64_t bytes_ = 0;
  std::vector<int> heads_q_, heads_k_;  ///< by slot
  Buffer query_heads_, key_heads_, mask_slots_, query_slots_;
  Lists query_lists_, key_lists_;
  Buffer q_squared_, k_squared_, v_squared_, dout_squared_;
  Buffer rows_;
  std::vector<RowStatistic> host_rows_;
  Output o_, dq_, dk_, dv_;
  bool has_forward_ = false;
  bool has_gradients_ = false;
};

}  // namespace longca
