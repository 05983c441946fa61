#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "attention/api/problem.h"
#include "core/memory.h"
#include "core/status.h"
#include "core/tensor.h"
#include "mask/mask.h"

namespace longca {

/// A result over other keys: o [tokens_q, heads_q, value_dim] in the problem's dtype, 0 where lse
/// is −∞; lse [heads_q, tokens_q]. Absent if without data.
struct EarlierResult {
  ConstTensorView o;
  ConstLseView lse;
};

/// Tensors of a forward pass, in the memory of the problem's device. A query row without an allowed
/// key gets o = 0 and lse = −∞ or, with a sink, the sink's logit.
struct ForwardArgs {
  ConstTensorView q;  ///< [tokens_q, heads_q, dim]
  ConstTensorView k;  ///< [tokens_k, heads_k, dim]
  ConstTensorView v;  ///< [tokens_k, heads_k, value_dim]
  TensorView o;  ///< [tokens_q, heads_q, value_dim], the problem's dtype; float32 if accumulate
  LseView lse;   ///< [heads_q, tokens_q] float32; includes the sink
  /// [heads_q] float32, contiguous; only of a problem with `sink`. Null in a call that leaves the
  /// sinks out: of calls that accumulate over several key sets, exactly one takes them.
  const float* sink = nullptr;
  /// Merges into (o, lse), which hold the result over other keys, instead of overwriting them:
  /// the softmax over both key sets (lse = −∞ marks a row that has seen nothing yet).
  bool accumulate = false;
  /// Makes (o, lse) the softmax over the keys of this result as well, rounded to the problem's
  /// dtype once more. May lie where o and lse do. Only without `accumulate`, and only where
  /// Kernel::merges_earlier(problem).
  EarlierResult earlier{};
  Stream stream = nullptr;
};

/// How a backward pass without BackwardArgs::accumulate writes dk and dv.
enum class KeyGradients : std::uint8_t {
  as_dq,              ///< overwrites them, in the problem's dtype
  overwrite_float32,  ///< overwrites them; they are float32
  add_float32,        ///< adds into them; they are float32
};

/// Rows and query heads of a call's dq that hold a result over other keys, in the problem's dtype.
struct HeldGradient {
  Range rows;
  Range heads;
  bool empty() const { return rows.empty() || heads.empty(); }
};

/// Tensors of a backward pass. `o` and `lse` are those of the whole softmax (all keys of the row).
struct BackwardArgs {
  ConstTensorView dout;  ///< [tokens_q, heads_q, value_dim], the problem's dtype
  ConstTensorView q;     ///< this and the others as in ForwardArgs, o in the problem's dtype
  ConstTensorView k;
  ConstTensorView v;
  ConstTensorView o;
  ConstLseView lse;
  TensorView dq;  ///< shape of q; float32 if accumulate
  TensorView dk;  ///< shape of k; float32 if accumulate or key_gradients says so
  TensorView dv;  ///< shape of v; likewise
  /// [heads_q] float32, contiguous; only of a problem with `sink`. dsink = Σ over rows of
  /// −exp(sink − lse) (dO · O), which is over all keys already: of a row's calls over several key
  /// sets, exactly one takes it. Both null in a call that leaves it out.
  const float* sink = nullptr;
  float* dsink = nullptr;
  bool accumulate = false;  ///< adds into dq, dk, dv, dsink instead of overwriting them
  /// Other than as_dq only without `accumulate`, and only where Kernel::sums_key_gradients().
  KeyGradients key_gradients = KeyGradients::as_dq;
  /// Where this call adds to dq, which is rounded to the problem's dtype once more; elsewhere it
  /// overwrites. Only without `accumulate`, and only where Kernel::adds_to_dq().
  HeldGradient held{};
  Stream stream = nullptr;
};

/// Memory that a plan's calls work in and that holds nothing between them: lent by a caller
/// that runs several plans one after the other, or allocated by the plan's first call.
class PlanScratch {
 public:
  PlanScratch() = default;
  PlanScratch(MemoryTracker& memory, std::int64_t bytes) : memory_(&memory), bytes_(bytes) {}

  std::int64_t bytes() const { return bytes_; }
  /// The bytes that count as the plan's workspace.
  std::int64_t own_bytes() const { return lent_ != nullptr ? 0 : bytes_; }
  /// To be called before the first call of the plan, if at all. `memory` has bytes() and outlives
  /// the plan's calls.
  void lend(std::byte* memory) { lent_ = memory; }
  std::byte* data() {
    if (lent_ != nullptr) return lent_;
    if (own_.bytes() < bytes_) own_ = Buffer(*memory_, bytes_);
    return own_.as<std::byte>();
  }

 private:
  MemoryTracker* memory_ = nullptr;
  std::int64_t bytes_ = 0;
  std::byte* lent_ = nullptr;
  Buffer own_;
};

/// A kernel made ready for one problem and mask: index lists, workspace, compiled code. Calls may
/// be repeated, one at a time.
class Plan {
 public:
  virtual ~Plan() = default;
  virtual void forward(const ForwardArgs& args) = 0;
  /// Only for a problem with `backward`.
  virtual void backward(const BackwardArgs& args) = 0;
  /// Bytes that this plan holds besides the tensors of the calls.
  virtual std::int64_t workspace_bytes() const = 0;
  /// Scratch that plans which run one after the other can share; null if there is none.
  virtual PlanScratch* scratch() { return nullptr; }

  /// A backward pass may begin with work on the rows alone (the sums of dO · O, say), which
  /// prepare_rows can queue before k and v have arrived. keep_rows allocates the plan's own memory
  /// for its results, so that calls of plans with the same scratch may run between prepare_rows and
  /// the backward call; to be called before the scratch is lent. Returns the bytes allocated: 0 if
  /// the plan has no such part or needs more than `max_bytes` for it.
  virtual std::int64_t keep_rows(std::int64_t /*max_bytes*/) { return 0; }
  /// Only if keep_rows returned more than 0. Queues that work on args.stream, without reading k and
  /// v. The next backward call leaves it out if its dout, o, lse, accumulate and key_gradients are
  /// the same, and else repeats it.
  virtual void prepare_rows(const BackwardArgs& /*args*/) {}

  /// What runs, for the record's notes, by name: the version of a library, the back end it chose.
  virtual std::map<std::string, std::string> notes() const { return {}; }
  /// How long compiling took, in plan() or in the first calls, in ms: a record keeps it apart from
  /// the plan's time.
  virtual double compile_ms() const { return 0; }
};

/// Device memory that a backward pass takes beside its tensors, in bytes, as far as it grows with
/// them: what its peak is estimated by.
struct BackwardBytes {
  double per_q = 0;    ///< an element of q: 4 where dQ is summed in float32
  double per_k = 0;    ///< an element of k
  double per_row = 0;  ///< a query of a head: 4 for each float32 that is kept of it
  /// The same beside these where query heads share a KV head: 4 an element of q where each has a dK
  /// and a dV of its own in 16 bits, 8 an element of k where both are summed in float32.
  double grouped_per_q = 0;
  double grouped_per_k = 0;
  double packed_per_q = 0;  ///< likewise, of packed documents alone
  /// Queries and keys by which each packed document makes these longer, but for dK and dV of query
  /// heads.
  int document_rows = 0;
  int document_keys = 0;
};

/// The tiles of which a pass computes those that a mask with block lists does not leave empty.
struct TileShape {
  int rows = 0;  ///< queries × heads; 0: not said
  int keys = 0;
  int packed_heads = 1;  ///< query heads of a KV head that share the rows, at most: a power of two
};

/// For which masks the forward pass takes the longest tile rows of all heads first, instead of
/// going head by head.
enum class LongestFirst : std::uint8_t { never, of_windows /**< causal too */, always };

/// Who computes dK and dV of a KV head that query heads share.
enum class GroupGradients : std::uint8_t {
  not_said,
  of_each_head,  ///< CTAs compute those of one query head, which are summed in memory
  of_group,      ///< a CTA computes those of its keys over all query heads, and others dQ
};

/// What a kernel can do, as data: `longca list kernels` prints it, `check_capabilities` applies it.
/// Kernels of one name on different devices are one row of the tables.
struct Capabilities {
  std::string name;
  std::string description;  ///< one line
  std::string origin;       ///< "here", or the package it comes from
  DeviceKind device = DeviceKind::cpu;
  int min_architecture = 0;   ///< of a GPU: 80 for compute capability 8.0; 0: any
  int only_architecture = 0;  ///< the one it was built for (90 for sm_90a code); 0: any
  std::vector<DType> dtypes;
  std::vector<int> head_dims;  ///< empty: any
  std::string more_dims{};     ///< what a refusal adds: the build option that has others
  /// Takes a v of any smaller dimension than that of q and k (Problem::head_dim_v).
  bool value_dims = false;
  /// Further pairs of different dimensions that it takes.
  std::vector<DimPair> dim_pairs{};
  bool gqa = true;           ///< heads_q > heads_k
  bool static_masks = true;  ///< masks without block lists
  bool block_masks = true;   ///< masks with block lists
  bool backward = true;
  bool accumulate = true;
  std::vector<int> merges_earlier_dims{};  ///< head dimensions of Kernel::merges_earlier
  bool adds_to_dq = false;                 ///< Kernel::adds_to_dq, on some machine
  /// Has a backward pass that gives the same bits from call to call, for Problem::deterministic.
  bool deterministic = false;
  bool sinks = false;    ///< Problem::sink, both passes that it has
  bool softcap = false;  ///< Problem::softcap, likewise
  bool returns_lse = true;
  bool strided = true;  ///< tensors and lse arrays with gaps; else contiguous ones only
  /// The backward pass of a window to both sides of the diagonal computes the tiles outside of it
  /// too: what its time is estimated by.
  bool computes_all_of_windows_backward = false;
  LongestFirst longest_first = LongestFirst::never;
  /// For packed documents the grid is the documents × the longest one's tiles: many CTAs exit at
  /// once.
  bool launches_longest_document = false;
  /// Sliding windows are an argument of the kernel, not a mask that it tests cell by cell.
  bool says_windows = true;
  /// Where a mask is no argument, each cell of a partial tile is tested against every key interval
  /// of its row, not against as many as the mask with most of them needs.
  bool tests_each_interval = false;
  /// Block lists with blocks of different sizes take another code path: times of other masks say
  /// nothing of its own.
  bool looks_up_uneven_blocks = false;
  BackwardBytes backward_bytes{};
  GroupGradients group_gradients = GroupGradients::not_said;
  TileShape forward_tile{};
  TileShape backward_tile{};  ///< said with the other one, if there is such a pass
  /// The backward pass uses the o and lse that it is given, which may be those of more keys than it
  /// sees; else what the forward pass of the same plan kept.
  bool gradient_of_parts = true;
};

/// One row of the benchmark. Stateless. docs/guide/adding-a-kernel.md shows how to add one.
class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual const Capabilities& capabilities() const = 0;
  /// Yes, or a status and a sentence in the kernel's own terms. Never throws.
  virtual Support supports(const Problem& problem, const Mask& mask) const = 0;
  /// All preparation that depends on the mask; timed apart. Only for supported problems.
  virtual std::unique_ptr<Plan> plan(const Problem& problem, const Mask& mask) const = 0;
  /// The part of `supports` that needs neither a device nor a library: whether the kernel's
  /// arguments can express the problem and the mask. By default what its capabilities say.
  virtual Support can_express(const Problem& problem, const Mask& mask) const;
  /// Whether backward calls on this machine take every KeyGradients, not only as_dq.
  virtual bool sums_key_gradients() const { return false; }
  /// Whether forward calls of this problem take ForwardArgs::earlier on this machine.
  virtual bool merges_earlier(const Problem& problem) const;
  /// Whether backward calls on this machine take BackwardArgs::held.
  virtual bool adds_to_dq() const { return capabilities().adds_to_dq; }
  /// Version of the library that it calls, as installed here; empty if there is none.
  virtual std::string version() const { return {}; }
};

/// Whether calls of the problem can take ForwardArgs::earlier, on a machine that has all the
/// kernel's instances: dtypes and dimensions as far as the capabilities say, and no softcap.
bool can_merge_earlier(const Capabilities& capabilities, const Problem& problem);
/// Whether the kernel is written for this kind of device, which need not be present.
Support check_kind(const Capabilities& capabilities, DeviceKind device);
/// Checks a problem against `capabilities`, on whatever machine; the sentence names the property
/// and its limit.
Support check_problem(const Capabilities& capabilities, const Problem& problem, const Mask& mask);
/// Checks the device and its architecture, then the problem.
Support check_capabilities(const Capabilities& capabilities, const Problem& problem,
                           const Mask& mask);

}  // namespace longca
