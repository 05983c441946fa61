#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/memory.h"
#include "longca.h"
#include "parallel/executor/executor.h"
#include "parallel/executor/step_math.h"
#include "parallel/plan/plan.h"
#include "parallel/transport/address_map.h"

namespace longca::capi {

/// The tensors of a rank plan's calls. On a GPU a plan uses most of them where the caller has them:
/// it knows them by addresses that only stand for them. Those that messages land in, those on CPUs,
/// and those that lie otherwise than the plan needs (gaps, addresses that are no multiple of 16,
/// rows of padding behind them) are copied in and out.
class CallersTensors {
 public:
  /// Allocates what messages use: collective.
  CallersTensors(const RankPlan& plan, const Problem& problem, std::int64_t rows,
                 std::int64_t padded_rows, Communicator& communicator);

  /// What the plan's executor is made for.
  const RankTensors& rank_tensors() const { return tensors_; }
  const AddressMap& map() const { return map_; }

  /// Forgets copies of a call that was given up.
  void begin_call();
  /// An argument of the call.
  void take_in(TensorRole role, const longca_tensor& from);
  void give_out(TensorRole role, const longca_tensor& to);
  /// [heads_q] each, of a problem with sinks.
  void take_in_sinks(const float& from);
  void give_out_sink_gradients(float& to);
  /// Copies in, before the pass, and out, after it.
  void queue_in(Stream stream);
  void queue_out(Stream stream);
  /// Copies of further memory, with those in or out.
  void add_in(void* from, void* to, std::int64_t bytes);
  void add_out(void* from, void* to, std::int64_t bytes);

 private:
  struct Tensor {
    TensorView view;         ///< the plan's
    bool stands_in = false;  ///< no memory is at its address
    Buffer staged;           ///< instead of the caller's, once that was necessary
  };
  Tensor& of(TensorRole role) { return all_[static_cast<std::size_t>(role)]; }
  std::int64_t sink_bytes() const;
  /// Where the plan finds the tensor in this call: the caller's own, or what it is copied to or
  /// from.
  TensorView settle(TensorRole role, const TensorView& callers);

  /// Addresses without memory.
  class Reserved {
   public:
    explicit Reserved(std::int64_t bytes);
    ~Reserved();
    Reserved(const Reserved&) = delete;
    Reserved& operator=(const Reserved&) = delete;
    std::byte* begin() const { return static_cast<std::byte*>(begin_); }

   private:
    void* begin_;
    std::size_t bytes_;
  };

  const Problem& problem_;
  Problem local_;              ///< of the rank's own rows
  std::array<Tensor, 9> all_;  ///< by role
  RankTensors tensors_;
  Buffer sinks_;  ///< the plan's own sinks and their gradients, [heads_q] each
  AddressMap map_;
  std::optional<Reserved> reserved_;  ///< for stand-ins
  std::vector<TensorCopy> in_, out_;
};

}  // namespace longca::capi
