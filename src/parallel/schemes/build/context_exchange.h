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

/// Where a turn's gradients of one KV group go, and which of its rows they have reached.
struct GradientTarget {
  KeyPair into;
  /// Whether all rows must hold something after the turn: zero where no query saw the key. Else
  /// only rows that were reached are used.
  bool complete = true;
  Coverage coverage{};
};

/// A part of the gradients of own keys that lies elsewhere, float32.
struct LateSum {
  KeyPair from;
  Range rows;  ///< of the own keys
};
/// Per KV group.
using LateSums = std::vector<std::vector<LateSum>>;

/// How the keys of other CP ranks come to a rank that keeps its queries, in turns: in each there
/// are blocks of keys to compute on, in turn 0 the CP rank's own. In the backward pass gradients
/// of keys go back to their owners. The same object writes the exchanges of both passes.
class ContextExchange {
 public:
  virtual ~ContextExchange() = default;

  virtual int turns() const = 0;
  virtual int blocks(int turn) const = 0;
  /// Tokens of a block, ascending.
  virtual std::vector<Range> ranges(int turn, int block) = 0;
  /// Rows of these tokens.
  virtual KeyPair keys(int turn, int block, int group) = 0;

  /// Writes what brings the keys of later turns, as far as it should be on its way while `turn` is
  /// computed. Called before each turn, in order, in either pass.
  virtual void fetch(int turn) = 0;

  /// Starts the backward pass. `own`: where the gradients of the own keys are to end, per KV group;
  /// float32 if there are other CP ranks.
  virtual void begin_gradients(std::vector<KeyPair> own) = 0;
  /// Where the gradients of a block go. Valid from before_gradients to after_gradients of the turn.
  virtual GradientTarget& target(int turn, int block, int group) = 0;
  /// Writes the exchanges of gradients that should be on their way while `turn` is computed; then,
  /// when it has been, what becomes of those that arrived and of the turn's own.
  virtual void before_gradients(int turn) = 0;
  virtual void after_gradients(int turn) = 0;
  /// After the last turn: exchanges and sums that remain. Calls `meanwhile` once, to write what is
  /// computed while the first of them is on its way. What comes last is not added any more: the
  /// gradients of the own keys are complete with the sums that this returns.
  virtual LateSums finish_gradients(const std::function<void()>& meanwhile) = 0;

  /// Not null where rows are divided in place of keys: turn 0 is then of the rows before and after,
  /// turn 1 of the joint ones.
  virtual const JointSplit* joint_split() const { return nullptr; }
  /// Says which rows of the one stage the calls on joint rows are given, in this pass: ascending,
  /// not touching.
  virtual void need_joint_keys(const std::vector<Range>& /*rows*/) {}
  /// Rows of the own keys whose gradients others, or joint rows, add to; may overlap.
  virtual std::vector<Range> shared_keys() const { return {}; }
};

}  // namespace longca
