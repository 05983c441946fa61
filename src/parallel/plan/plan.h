#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/dtype.h"
#include "mask/mask.h"

namespace longca {

/// The tensors of an attention, as a plan of context parallelism names them.
enum class TensorRole : std::uint8_t { q, k, v, o, lse, dout, dq, dk, dv };
std::string_view to_string(TensorRole role);

/// An array that one rank holds while a plan runs: [tokens, heads, dim], or [heads, tokens] for
/// lse. Elements have the problem's dtype, or float32 where partial results are summed or merged
/// (lse is always float32).
struct PlanBuffer {
  std::string name;  ///< for the printed plan: "k of the pass"
  TensorRole role = TensorRole::q;
  std::int64_t tokens = 0;
  int heads = 0;
  bool float32 = false;
  /// The caller's own tensor of this role, [the shard's tokens, all heads], in the problem's dtype:
  /// the plan's input (q, k, v, dout; in the backward pass o and lse too) or its result.
  bool external = false;
  /// Written by the forward pass and read by the backward pass: holds its values in between.
  bool kept = false;
  bool operator==(const PlanBuffer&) const = default;
};

/// A rectangle of a buffer: some of its tokens of some of its heads, all of `dim`.
struct Region {
  int buffer = 0;  ///< index into RankPlan::buffers
  Range tokens;    ///< rows of the buffer
  Range heads;     ///< heads of the buffer
  bool operator==(const Region&) const = default;
};

/// One half of a transfer; the other half stands in the peer's plan. The n-th message of a pass
/// that rank a sends to b is the n-th that b receives from a, counted over all exchanges in their
/// order; both regions have equal numbers of tokens and heads and the same element type.
struct Message {
  int peer = 0;
  Region region;  ///< what leaves, or where it lands
  bool operator==(const Message&) const = default;
};

/// The collective that an exchange amounts to, in the words of NCCL and MPI: for printing, and for
/// transports that treat some patterns specially.
enum class Pattern : std::uint8_t {
  send_receive,
  all_to_all,
  all_gather,
  reduce_scatter,  ///< its messages alone; Add or Total sums what arrives
  group_cast,
  group_reduce,  ///< likewise
};
std::string_view to_string(Pattern pattern);

/// Messages that are in flight together: none waits for another of the same exchange.
struct Exchange {
  Pattern pattern = Pattern::send_receive;
  std::vector<Message> sends;
  std::vector<Message> receives;
};

/// Copies inside the rank: regions of one shape and element type.
struct Copy {
  Region from, to;
};

/// Attention of some rows over some keys. Writes o and lse if `first`; otherwise merges into what
/// they hold, as attention over both key sets (then o is float32). Of a problem with sinks, rows
/// take theirs in the Attend that is `first` on them.
struct Attend {
  Region q, k, v;
  Region o, lse;
  int mask = 0;  ///< index into RankPlan::masks: [rows of q, rows of k]
  bool first = true;
  int first_head = 0;  ///< number of its first query head among all of the problem's
};

/// Adds the sinks to the softmax of rows that were cleared before an Attend, or seen by none: these
/// end with lse = sink.
struct JoinSinks {
  Region o, lse;
  int first_head = 0;
};

/// The rank's part of the gradient of the sinks, a sum over ranks: dsink of these heads =
/// −Σ over the rows of exp(sink − lse) (dO · O). `first` of the pass sets that of all heads to 0.
struct SinkGradients {
  Region dout, o, lse;
  int first_head = 0;
  bool first = true;
};

/// The gradients of an Attend, given o and lse of the whole softmax. Adds to dq, dk, dv (float32);
/// `first_dq` and `first_dkv` overwrite instead.
struct AttendBackward {
  Region dout, q, k, v, o, lse;
  Region dq, dk, dv;
  int mask = 0;
  bool first_dq = true;
  bool first_dkv = true;
};

/// into (float32) += from, of either element type.
struct Add {
  Region from, into;
};

/// Rounds float32 to the problem's dtype. Copies where `to` is float32.
struct Convert {
  Region from, to;
};

/// to = the sum of all parts, each over its own rows of `to`, rounded to the dtype of `to`; rows
/// that no part covers become 0. May clobber the parts.
struct Total {
  struct Part {
    Region from;           ///< float32, the heads of `to`
    std::int64_t row = 0;  ///< row of `to` to which its first row belongs
  };
  std::vector<Part> parts;
  Region to;
};

/// Sets a region to the neutral element of adding and merging: zeros, −∞ for lse.
struct Clear {
  Region region;
};

/// Each lane (on a GPU a stream) runs its ops in the order of the list. Across lanes an op waits
/// only for what it names in `after`.
enum class Lane : std::uint8_t { compute, communication };

struct Op {
  std::variant<Exchange, Copy, Attend, AttendBackward, Add, Convert, Total, Clear, JoinSinks,
               SinkGradients>
      what;
  /// Indices of earlier ops of the same list that must have completed. Ops of the same lane need
  /// not be named.
  std::vector<int> after;
  /// Exchanges, and the copies that belong to one, run on the communication lane.
  Lane lane = Lane::compute;
  int step = 0;  ///< of the scheme: 0, 1, …; for printing and plotting alone
};

/// Where a result lies when a pass has ended: `region` holds the tokens of the ranges (ascending,
/// global numbers, in this order) of these global heads. The regions of all ranks make up the
/// tensor, each element once.
struct Placement {
  TensorRole role = TensorRole::o;
  Region region;
  std::vector<Range> tokens;
  Range heads;
};

/// What one rank does: pure data, built without communication, the same on every rank that builds
/// it. If exchanges do not block, running the ops one by one in the order of the list is valid.
struct RankPlan {
  int rank = 0;
  int ranks = 1;
  std::vector<PlanBuffer> buffers;
  std::vector<Mask> masks;
  std::vector<Op> forward;
  std::vector<Op> backward;  ///< empty if the problem has no backward pass
  std::vector<Placement> results;
  /// Facts for the record: "each KV head is held by 2 ranks".
  std::vector<std::string> notes;

  /// The whole of buffer `index`.
  Region whole(int index) const;
};

/// Bytes of one element of a buffer.
std::int64_t element_size(const PlanBuffer& buffer, DType dtype);
/// Bytes of a region; `head_dim` does not count for lse.
std::int64_t region_bytes(const RankPlan& plan, const Region& region, int head_dim, DType dtype);

/// Sums over a list of ops of one rank.
struct PlanSums {
  std::int64_t bytes_sent = 0;
  std::int64_t bytes_received = 0;
  std::int64_t messages = 0;  ///< sent
  /// Allowed cells × query heads of the attend ops (of either pass).
  double cells = 0;
};
PlanSums sum_plan(const RankPlan& plan, const std::vector<Op>& ops, int head_dim, DType dtype);

}  // namespace longca
