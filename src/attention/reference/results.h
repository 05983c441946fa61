#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attention/api/kernel.h"
#include "attention/reference/bounds.h"
#include "attention/reference/passes.h"
#include "attention/reference/selection.h"
#include "attention/reference/sink_gradient.h"
#include "core/memory.h"

namespace longca {

/// The reference's values and error bounds for the selected tiles. Every compute_ method but the
/// last computes once.
class ReferenceResults {
 public:
  ReferenceResults(const ReferenceProblem& problem, Selection selection);

  struct QueryTile {
    RowStatistics<double> rows;
    RowStatistics<float> same_precision;
    double score_magnitude = 0;
    std::uint64_t reached = 0;  ///< bit i: row i has a key
    TileBound o, dq;
  };
  struct KeyTile {
    std::uint64_t reached = 0;  ///< bit i: key i has a query
    TileBound dk, dv;
  };

  const Selection& selection() const { return selection_; }
  void compute_forward();
  void compute_query_gradients();
  /// dK, dV and dsink from the reference's own forward pass; not in Mode::tiles.
  void compute_key_gradients();
  /// dK, dV and dsink from the o and lse that a backward pass was given, unless they are of these
  /// values already.
  void compute_key_gradients_from(const ConstTensorView& o, const ConstLseView& lse);

  const QueryTile& query_tile(std::size_t i) const { return query_tiles_[i]; }
  const KeyTile& key_tile(std::size_t i) const { return key_tiles_[i]; }
  /// Of every query head of heads_of(selection()), computed with the key gradients; empty without
  /// sinks.
  std::span<const SinkGradient> sink_gradients() const { return sink_gradients_; }
  /// Values of the i-th selected tile: [kTile, dim], o and dv of value_dim.
  std::span<const double> o(std::size_t i) const { return tile_of(o_, i, value_size()); }
  std::span<const double> dq(std::size_t i) const { return tile_of(dq_, i, key_size()); }
  std::span<const double> dk(std::size_t i) const { return tile_of(dk_, i, key_size()); }
  std::span<const double> dv(std::size_t i) const { return tile_of(dv_, i, value_size()); }

  std::int64_t bytes() const;
  static std::int64_t bytes_for(const Problem& problem, const Selection& selection);

 private:
  using RowsOf64 = TilePasses<double>::RowsOf;
  using RowsOf32 = TilePasses<float>::RowsOf;

  /// Elements of a tile of dq or dk, and of o or dv.
  std::int64_t key_size() const { return kTile * problem_.shape.head_dim; }
  std::int64_t value_size() const { return kTile * problem_.shape.value_dim(); }
  static std::span<double> tile_of(const HostBuffer& buffer, std::size_t i, std::int64_t size) {
    return {buffer.as<double>() + static_cast<std::int64_t>(i) * size,
            static_cast<std::size_t>(size)};
  }
  /// Index into selection().queries of a tile; not in Mode::tiles.
  std::size_t query_index(std::int64_t head_q, std::int64_t tile) const;
  void compute_key_tiles(const RowsOf64& exact, const RowsOf32& same_precision);
  void compute_sink_gradients(const RowsOf64& exact, const RowsOf32& same_precision);

  const ReferenceProblem& problem_;
  Selection selection_;
  HostBuffer o_, dq_;   ///< [selected query tiles, kTile, dim of the output] float64
  HostBuffer dk_, dv_;  ///< [selected key tiles, kTile, dim of the output] float64
  std::vector<QueryTile> query_tiles_;
  std::vector<KeyTile> key_tiles_;
  std::vector<SinkGradient> sink_gradients_;
  std::vector<std::int64_t> first_of_head_;  ///< per query head: index of its first tile, or −1
  bool has_forward_ = false;
  bool has_query_gradients_ = false;
  bool has_key_gradients_ = false;
  std::optional<std::uint64_t> given_;  ///< hash of the (o, lse) that dk_ and dv_ are of, if any
};

}  // namespace longca
