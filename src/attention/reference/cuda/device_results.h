#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attention/api/kernel.h"
#include "attention/reference/cuda/passes.h"
#include "attention/reference/drawn_tiles.h"
#include "attention/reference/passes.h"
#include "attention/reference/sink_gradient.h"
#include "core/device.h"
#include "core/memory.h"

namespace longca {

/// The reference's values in device memory, and the statistics of their tiles on the host, for the
/// drawn tiles of the drawn KV heads and all their query heads. A head's index is its place among
/// the drawn ones. Results are computed lazily; memory for whole heads is allocated at once.
class DeviceResults {
 public:
  /// Throws InputError for a head dimension that the passes do not support, or a GPU with too
  /// little shared memory per CTA.
  DeviceResults(const ReferenceProblem& problem, DrawnTiles drawn);

  struct Output {
    Buffer values;             ///< [head_count, tokens, dim of the output] float32
    Buffer device_statistics;  ///< [head_count, tiles] TileStatistics, zero if not drawn
    std::vector<TileStatistics> statistics;  ///< the same on the host
    std::span<const int> heads;              ///< by index
    const int* device_heads = nullptr;       ///< the same on the device
    std::span<const std::int32_t> drawn;     ///< the tiles computed of each head, ascending
    const std::int32_t* device_drawn = nullptr;
    std::int64_t tokens = 0;

    std::int64_t tiles() const { return tile_count(tokens); }
    /// Head index and tile of the i-th drawn tile, in order of head index, then tile.
    std::size_t head_index_of(std::size_t i) const { return i / drawn.size(); }
    std::int64_t tile_of(std::size_t i) const { return drawn[i % drawn.size()]; }
    /// Its index in `statistics`.
    std::size_t statistics_index(std::size_t i) const {
      return head_index_of(i) * static_cast<std::size_t>(tiles()) +
             static_cast<std::size_t>(tile_of(i));
    }
    /// Its first row in `values`.
    std::int64_t row_of(std::size_t i) const {
      return static_cast<std::int64_t>(head_index_of(i)) * tokens + tile_of(i) * kTile;
    }
  };

  void compute_forward();
  void compute_query_gradients();
  /// dK and dV from the reference's own rows, which takes the forward pass of all tiles.
  void compute_key_gradients();
  /// dK and dV of the drawn tiles from the o and lse that a backward pass was given, unless
  /// they are of these values already.
  void compute_key_gradients_from(const ConstTensorView& o, const ConstLseView& lse);

  const Output& o() const { return o_; }
  const Output& dq() const { return dq_; }
  const Output& dk() const { return dk_; }
  const Output& dv() const { return dv_; }
  bool whole() const { return drawn_.whole; }
  /// [query heads, tokens_q] on the host, valid in drawn tiles.
  const std::vector<RowStatistic>& rows() const { return host_rows_; }
  /// [query heads, tokens_q]: the rows that dK and dV were last computed from.
  std::vector<RowStatistic> rows_of_keys() const;
  /// dsink of every drawn query head, from these rows; empty without sinks.
  std::vector<SinkGradient> sink_gradients() const;
  const std::vector<int>& heads_q() const { return heads_q_; }
  const std::vector<int>& heads_k() const { return drawn_.heads_k; }

  std::int64_t bytes() const { return bytes_; }
  static std::int64_t bytes_for(const Problem& problem, const Mask& mask, std::int64_t heads_k);

 private:
  struct Lists {
    Buffer list_of, list_offsets, intervals, run_offsets, runs;
    Buffer order;        ///< of all tiles
    Buffer drawn_order;  ///< of the drawn tiles, if they are not all
    Buffer drawn;        ///< drawn tiles, ascending
    DeviceIntervals view() const;
  };

  Buffer allocate(std::int64_t bytes);
  template <typename T>
  Buffer upload(const std::vector<T>& values);
  Lists upload_lists(const IntervalLists& lists, const std::vector<std::int32_t>& drawn);
  Output make_output(std::span<const int> heads, const Buffer& device_heads, const Lists& lists,
                     std::span<const std::int32_t> drawn, std::int64_t tokens, int dim);
  PassArgs arguments(ReferencePass pass, bool all) const;
  void compute(ReferencePass pass, const Buffer& rows, bool all, Output& output);
  void compute_rows(bool all);
  void compute_key_gradients_of(const Buffer& rows);
  void copy_statistics(Output& output) const;

  const ReferenceProblem& problem_;
  Device& device_;
  std::int64_t bytes_ = 0;
  DrawnTiles drawn_;
  std::vector<int> heads_q_;  ///< by index
  Buffer query_heads_, key_heads_, mask_indices_, query_indices_;
  Lists query_lists_, key_lists_;
  Buffer q_squared_, k_squared_, v_squared_, dout_squared_;
  Buffer rows_;
  Buffer given_rows_;                   ///< from a kernel's o and lse, if tiles are drawn
  std::optional<std::uint64_t> given_;  ///< hash of the given rows that dk_ and dv_ are of, if any
  std::vector<RowStatistic> host_rows_;
  const Buffer* rows_of_keys_ = nullptr;
  Output o_, dq_, dk_, dv_;
  bool has_forward_ = false;
  bool has_all_rows_ = false;
  bool has_query_gradients_ = false;
  bool has_key_gradients_ = false;  ///< from the reference's own rows
};

}  // namespace longca
