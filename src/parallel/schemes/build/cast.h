#pragma once

#include <map>
#include <optional>
#include <tuple>

#include "parallel/schemes/build/cast_stages.h"
#include "parallel/schemes/build/context_exchange.h"
#include "parallel/schemes/build/head_exchange.h"
#include "parallel/schemes/build/joint_split.h"

namespace longca {

/// Keys that one CP rank sends another in a cast: one message per run.
struct Parcel {
  int peer = 0;               ///< the other rank
  std::vector<Range> tokens;  ///< what travels, ascending
  std::vector<Range> runs;    ///< its rows in the owner's shard
  std::vector<Range> into;    ///< per run, rows of the own stage buffer; empty at the owner
  Range padding;              ///< rows of the shard, sent after the keys; has no gradients
  Range padding_into;         ///< rows of the stage buffer
};

/// One exchange of a cast, as one rank sees it; where keys are relayed, two exchanges.
struct CastStage {
  struct Block {
    std::vector<Range> ranges;  ///< tokens
    Range rows;                 ///< their rows in the stage buffer
  };
  std::vector<Parcel> from;  ///< per owner, keys that it sends to this rank alone
  std::vector<Parcel> to;    ///< per rank, own keys that it alone receives
  /// Relays: per owner, keys that this rank brings into its node for others too; per rank, own keys
  /// that it passes on; per rank of the own node, keys that it passes on to this one, or that this
  /// rank passes on to it (`runs` as `tokens`).
  std::vector<Parcel> shared_from, shared_to, pass_from, pass_to;
  std::vector<Range> relayed;  ///< rows of the stage buffer that shared_from fills, ascending
  Parcel own;                  ///< own keys copied into the stage buffer (JointSplit)
  std::vector<Block> blocks;
  std::int64_t rows = 0;  ///< of the stage buffer
};

/// Owners send their keys directly: all of them (all-gather, as in Llama 3), or only those that the
/// receiver's queries see (group-cast, MagiAttention). Step 0 computes on the own keys, each
/// further step on one stage (cast_stages.h), which arrives while the step before it is computed.
///
/// A stage holds its keys in ascending order: one message per range, one kernel call for all. With
/// `by_owner` (for shards of many ranges) it holds one block per owner: fewer messages, one call
/// per block. Gradients are summed in float32 per stage and return to the owners by the same
/// messages in reverse (reduce-scatter, group-reduce) while the next stage is computed.
///
/// Over several nodes a group-cast brings each key into a node once, though several of its CP ranks
/// see it (relays.h): to one of them, which passes it on in a second exchange. Its gradients take
/// the same way back: the others send their sums to that rank, which adds them to its own and
/// returns one sum to the owner, a step later.
///
/// With a JointSplit, step 0 computes the rows that see own keys only, and the single stage all
/// other rows: the own keys that these see are copied into the stage buffer, and their gradients
/// are added like those that arrive.
class Cast final : public ContextExchange {
 public:
  struct Options {
    CastStages stages;
    /// If set, only keys that the receiver's queries see are cast.
    std::optional<SeenKeys> seen;
    bool by_owner = false;
  };
  /// Chooses a JointSplit, or none. Called only where the cast has a single stage.
  using ChooseSplit = std::function<std::optional<JointSplit>(const CastTraffic&)>;

  Cast(const Grid& grid, int rank, const Options& options, const ChooseSplit& choose_split,
       const HeadLayout& layout, HeadExchange& heads, PlanWriter& writer);

  const JointSplit* joint_split() const override { return split_ ? &*split_ : nullptr; }
  void need_joint_keys(const std::vector<Range>& rows) override { needed_ = rows; }
  std::vector<Range> shared_keys() const override;
  int steps() const override { return static_cast<int>(stages_.size()) + 1; }
  int blocks(int step) const override;
  std::vector<Range> ranges(int step, int block) override;
  KeyPair keys(int step, int block, int group) override;
  void fetch(int step) override;
  void begin_gradients(std::vector<KeyPair> own) override;
  /// The sums of the last stage are returned, those of the ones before are added.
  bool adds_to_own_keys() const override { return steps() > 2; }
  GradientTarget& target(int step, int block, int group) override;
  void before_gradients(int step) override;
  void after_gradients(int step) override;
  LateSums finish_gradients(const std::function<void()>& meanwhile) override;

 private:
  enum class BufferKind : std::uint8_t { keys, sums, arrived, passed, relayed, returned };

  const CastStage& stage_of(int step) const { return stages_[static_cast<std::size_t>(step - 1)]; }
  KeyPair own_keys(int group);
  /// Buffers: keys, one per stage; sums, two that alternate between stages; what arrives of sums of
  /// own keys, one for all; of sums that this rank relays, the sums passed to it and their sum, one
  /// for all; sums of own keys that were relayed, two that alternate.
  KeyPair buffer(BufferKind kind, int which, int group, std::int64_t rows);
  void copy_own_keys(int step);
  /// Of stage.own, the runs that calls on joint rows read in this pass (needed_).
  Parcel needed_own_keys(const CastStage& stage) const;
  /// Writes the exchange, while `step` is computed, of the sums of step `direct` to owners and
  /// relays, and of the sums that relays have made of step `relayed`; 0: of none.
  void send_sums(int direct, int relayed, int step);
  void append_direct(int of_step, int group, Exchange& exchange);
  void append_relayed(int of_step, int group, Exchange& exchange);
  /// Adds up what this rank relays of a step's sums.
  void sum_relayed(int of_step, int step);
  Total relayed_total(int of_step, int group, TensorRole role);
  void add_to_own(const LateSums& sums, int step);
  /// The sums of own keys for a step: those that arrived, and those in the stage buffer.
  LateSums sums_of(int step);
  /// Those that relays returned.
  void append_returned(int of_step, LateSums& sums);

  HeadExchange& heads_;
  PlanWriter& writer_;
  bool seen_only_;
  int groups_;
  Shard shard_;
  std::optional<JointSplit> split_;
  std::vector<Range> needed_;  ///< need_joint_keys: rows of the single stage's buffer
  std::vector<CastStage> stages_;
  std::int64_t max_rows_ = 0;      ///< of a stage buffer
  std::int64_t max_arriving_ = 0;  ///< rows of sums that a stage brings back directly
  std::int64_t max_passed_ = 0;    ///< that others of the node pass to this rank
  std::int64_t max_relayed_ = 0;   ///< that this rank relays
  std::int64_t max_returned_ = 0;  ///< of own keys, that relays return
  bool relays_ = false;            ///< whether keys are relayed
  std::map<std::tuple<BufferKind, int, int>, KeyPair> buffers_;
  std::vector<KeyPair> own_gradients_;
  std::vector<GradientTarget> targets_;  ///< of the step: per block, per group
  int summed_ = 0;                       ///< the step whose sums wait to be sent; 0: none
  int in_flight_ = 0;                    ///< the step whose sums were sent; 0: none
  int relayed_ = 0;                      ///< the step whose relayed sums wait to be sent; 0: none
  int returning_ = 0;                    ///< the step whose relayed sums were sent; 0: none
};

}  // namespace longca
