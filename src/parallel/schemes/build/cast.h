#pragma once

#include <map>
#include <optional>
#include <tuple>

#include "parallel/schemes/build/cast_stages.h"
#include "parallel/schemes/build/context_exchange.h"
#include "parallel/schemes/build/head_exchange.h"
#include "parallel/schemes/build/joint_split.h"

namespace longca {

/// What one CP rank gets from another in a cast: runs of rows that travel as one message each.
struct Parcel {
  int peer = 0;             ///< the other one's rank
  std::vector<Range> runs;  ///< rows of the owner's shard
  std::vector<Range> into;  ///< as many, rows of the receiver's stage; empty at the owner
  Range padding;            ///< travels behind the keys, without gradients to come back
  Range padding_into;
};

/// One exchange of a cast, as one rank sees it.
struct CastStage {
  struct Block {
    std::vector<Range> ranges;  ///< tokens
    Range rows;                 ///< where they lie in the stage
  };
  std::vector<Parcel> from;  ///< owners of what arrives
  std::vector<Parcel> to;    ///< those who get rows from here
  Parcel own;                ///< own keys that lie among those that arrive (JointSplit)
  std::vector<Block> blocks;
  std::int64_t rows = 0;
};

/// Keys come straight from their owners: all of them (all-gather, as in Llama 3), or only those
/// that the CP rank's queries see (group-cast, MagiAttention). Turn 0 is the own keys, each
/// further turn a stage (cast_stages.h), on its way while the turn before is computed.
///
/// The keys of a stage lie in ascending order and are computed on at once, one message per range.
/// If `by_owner`, for shards torn into many ranges, each owner's keys stay together instead, in one
/// block per owner, with fewer messages. Gradients are float32 sums per stage; they return to the
/// owners by the same messages turned round (reduce-scatter, group-reduce) while the next stage is
/// computed, and are added there.
///
/// With a JointSplit turn 0 is of the rows that need own keys only, and the one stage of the
/// others: the own keys that they see are copied into it, and the sums of these added like those
/// that arrive.
class Cast final : public ContextExchange {
 public:
  struct Options {
    CastStages stages;
    /// Cast what is seen; without it, everything.
    std::optional<SeenKeys> seen;
    bool by_owner = false;
  };
  /// Whether rows are to be divided in place of keys; asked where there is one stage that allows
  /// it.
  using ChooseSplit = std::function<std::optional<JointSplit>(const CastTraffic&)>;

  Cast(const Grid& grid, int rank, const Options& options, const ChooseSplit& choose_split,
       const HeadLayout& layout, HeadExchange& heads, PlanWriter& writer);

  const JointSplit* joint_split() const override { return split_ ? &*split_ : nullptr; }
  void need_joint_keys(const std::vector<Range>& rows) override { needed_ = rows; }
  std::vector<Range> shared_keys() const override;
  int turns() const override { return static_cast<int>(stages_.size()) + 1; }
  int blocks(int turn) const override;
  std::vector<Range> ranges(int turn, int block) override;
  KeyPair keys(int turn, int block, int group) override;
  void fetch(int turn) override;
  void begin_gradients(std::vector<KeyPair> own) override;
  GradientTarget& target(int turn, int block, int group) override;
  void before_gradients(int turn) override;
  void after_gradients(int turn) override;
  LateSums finish_gradients(const std::function<void()>& meanwhile) override;

 private:
  enum class Slot : std::uint8_t { keys, sums, arrived };

  const CastStage& stage_of(int turn) const { return stages_[static_cast<std::size_t>(turn - 1)]; }
  KeyPair own_keys(int group);
  /// Buffers of a stage or shared by several.
  KeyPair buffer(Slot slot, int which, int group, std::int64_t rows);
  void copy_own_keys(int turn);
  /// Runs of own keys that lie in a joint buffer, as far as they are needed there.
  Parcel needed_own_keys(const CastStage& stage) const;
  void send_sums(int turn, int step);
  void add_arrived(int turn, int step);
  /// Where the sums lie that arrived of a turn, and own ones of a joint buffer.
  LateSums sums_of(int turn);

  HeadExchange& heads_;
  PlanWriter& writer_;
  bool seen_only_;
  int groups_;
  Shard shard_;
  std::optional<JointSplit> split_;
  std::vector<Range> needed_;  ///< rows of the one stage
  std::vector<CastStage> stages_;
  std::int64_t max_rows_ = 0;
  std::int64_t max_arriving_ = 0;
  std::map<std::tuple<Slot, int, int>, KeyPair> buffers_;
  std::vector<KeyPair> own_gradients_;
  std::vector<GradientTarget> targets_;  ///< of the turn: per block, per group
  int summed_ = 0;                       ///< the turn whose sums wait to be sent; 0: none
  int on_the_way_ = 0;                   ///< the turn whose sums were sent; 0: none
};

}  // namespace longca
