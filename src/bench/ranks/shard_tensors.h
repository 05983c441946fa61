#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "attention/api/problem.h"
#include "attention/inputs/inputs.h"
#include "bench/cell/margins.h"
#include "core/device.h"
#include "parallel/executor/executor.h"
#include "parallel/plan/rank_shard.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// Bytes of the tensors of a shard.
std::int64_t shard_bytes(const Problem& whole, std::int64_t rows);

/// A rank's inputs and outputs, in memory that messages can be sent from and received into. The
/// outputs lie between margins in which nobody must write.
class ShardTensors {
 public:
  /// Gradients exist only for a backward pass. Collective, as Communicator::allocate is.
  ShardTensors(const Problem& whole, const RankShard& shard, Communicator& communicator);

  const RankTensors& views() const { return views_; }
  /// [1, heads_q, 1] float32, of a backward pass of a problem with sinks; else without data.
  TensorView dsink() const { return dsink_; }
  /// The rows of make_inputs(whole, seed, style, documents), and zeros in the padding; all sinks.
  void draw(std::uint64_t seed, InputStyle style, std::span<const std::int64_t> documents);
  void poison_forward() const;
  void poison_backward() const;
  std::uint64_t input_fingerprint() const;
  /// The first margin that was written since construction, "64 bytes behind lse"; empty if none.
  /// Waits for the device.
  std::string written_margin() const { return margins_.written(); }

 private:
  Problem whole_;
  Device& device_;
  std::vector<Range> tokens_;
  RankTensors views_;
  TensorView sink_, dsink_;
  Margins margins_;
};

}  // namespace longca
