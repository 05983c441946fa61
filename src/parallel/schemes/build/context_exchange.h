#pragma once

#include <functional>
#include <vector>

#include "parallel/schemes/build/coverage.h"
#include "parallel/schemes/build/joint_split.h"
#include "parallel/schemes/build/plan_writer.h"

namespace longca {

/// K and V, or dK and dV, of some tokens: rows of two buffers of one KV group.
struct KeyPair {
  Region k, v;
};
/// Rows `rows` of the pair's buffers.
inline KeyPair rows_of_pair(KeyPair pair, Range rows) {
  pair.k.tokens = pair.v.tokens = rows;
  return pair;
}

/// Where the gradients of one KV group are summed in a step, and which of its rows were written.
struct GradientTarget {
  KeyPair into;
  /// Whether all rows are read after the step, so that rows of unseen keys must be cleared; else
  /// only the covered rows are read.
  bool complete = true;
  Coverage coverage{};
};

/// A float32 partial sum of gradients of own keys, in another buffer.
struct LateSum {
  KeyPair from;
  Range rows;  ///< of the own keys
};
/// Per KV group.
using LateSums = std::vector<std::vector<LateSum>>;

/// How keys of other CP ranks reach a rank that keeps its queries. Each step has blocks of keys to
/// compute on; step 0 has the rank's own. In the backward pass gradients of keys return to their
/// owners. One object writes the exchanges of both passes.
class ContextExchange {
 public:
  virtual ~ContextExchange() = default;

  virtual int steps() const = 0;
  virtual int blocks(int step) const = 0;
  /// Tokens of a block, ascending.
  virtual std::vector<Range> ranges(int step, int block) = 0;
  /// The buffer rows that hold these tokens.
  virtual KeyPair keys(int step, int block, int group) = 0;

  /// Writes the exchanges of keys that overlap with computing `step`. Called once before each step,
  /// in order, in both passes.
  virtual void fetch(int step) = 0;

  /// Starts the backward pass. `own`: where the gradients of the own keys end up, per KV group;
  /// float32 if there are other CP ranks.
  virtual void begin_gradients(std::vector<KeyPair> own) = 0;
  /// Where the gradients of a block go. Valid from before_gradients to after_gradients of the step.
  virtual GradientTarget& target(int step, int block, int group) = 0;
  /// before: writes the exchanges of gradients that overlap with computing `step`. after: adds what
  /// has arrived, and queues the step's own sums for sending.
  virtual void before_gradients(int step) = 0;
  virtual void after_gradients(int step) = 0;
  /// Whether after_gradients adds to the gradients of the own keys. If not, nothing does before the
  /// sums that finish_gradients returns.
  virtual bool adds_to_own_keys() const { return true; }
  /// Writes the exchanges and sums that remain after the last step. Calls `meanwhile` once, for the
  /// computing that overlaps with the first of them. Returns the sums that arrive last, which the
  /// caller has yet to add to the gradients of the own keys.
  virtual LateSums finish_gradients(const std::function<void()>& meanwhile) = 0;

  /// Not null where rows are divided instead of keys: step 0 then computes the rows `before` and
  /// `after`, step 1 the joint ones.
  virtual const JointSplit* joint_split() const { return nullptr; }
  /// Sets the rows of the stage buffer that calls on joint rows read in this pass: ascending, not
  /// touching.
  virtual void need_joint_keys(const std::vector<Range>& /*rows*/) {}
  /// Rows of own keys whose gradients other ranks or joint rows add to; may overlap.
  virtual std::vector<Range> shared_keys() const { return {}; }
};

}  // namespace longca
