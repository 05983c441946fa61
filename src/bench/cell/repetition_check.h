#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

#include "attention/reference/verifier.h"
#include "bench/cell/sign_changes.h"
#include "bench/cell/tensors.h"
#include "bench/measure/measurement.h"
#include "core/status.h"

namespace longca {

/// What a pass is about to be timed with.
struct TimedPass {
  Device& device;
  /// The pass's inputs, and its results, which were verified just before.
  PassTensors tensors;
  Pass pass = Pass::forward;
  /// Heads whose results are verified.
  CheckedHeads checked;
  /// For everything that is drawn; from std::random_device, the same on all ranks.
  std::uint64_t seed = 0;
  /// Verifies the results, which must be those of the original inputs; over ranks collective.
  std::function<Status()> verify;
  /// Runs the forward pass on the tensors: for a kernel whose backward pass uses what its own
  /// forward pass kept. Empty for others.
  std::function<void()> forward = {};
  /// Inputs must not change: the call replays a graph with what an earlier forward pass kept.
  bool inputs_stay = false;
  /// Whether `mine` is true on any rank; over ranks collective.
  std::function<bool(bool mine)> any = [](bool mine) { return mine; };
};

/// Checks that every timed repetition did the whole work, outside of the timed sections. A kernel
/// can predict neither what it finds in memory nor what is checked:
/// - Before each repetition or batch, and between the calls of a batch, inputs change in place
///   (SignChanges), so that no result is that of the call before.
/// - Before each repetition or batch the outputs hold NaN, a number, or what the call before left.
/// - Right after it, all results are compared with the verified ones to the bit. Where bits differ
///   they are verified in full: always at first, then at random. A check leaves the results as it
///   found them, so that the clock can see whether they still change after the call has ended.
class RepetitionCheck {
 public:
  explicit RepetitionCheck(TimedPass pass);
  ~RepetitionCheck();  ///< as `restore`
  RepetitionCheck(const RepetitionCheck&) = delete;
  RepetitionCheck& operator=(const RepetitionCheck&) = delete;

  /// Returns `call` with these checks around it; valid as long as this object.
  TimedWork around(std::function<void()> call);
  void prepare();
  /// Fills the outputs with NaN.
  void poison() const;
  /// False as soon as a repetition failed; `status` says why.
  bool check();
  /// Call it once the clock has examined the results too: turns them into those of the current
  /// inputs, from which the next repetition starts.
  void after_check() { signs_.catch_up(); }
  /// Sets `status`: the clock saw a repetition's work go on after its time.
  void fail_unfinished_work();
  const Status& status() const { return status_; }
  /// Restores the original inputs.
  void restore() { signs_.undo(); }

  /// How many repetitions so far gave the verified bits, and how many gave others.
  int same_bits() const { return same_bits_; }
  int other_bits() const { return other_bits_; }
  /// The hash of the results that were verified.
  std::uint64_t verified_bits() const { return verified_; }

 private:
  /// What the outputs hold before a call.
  enum class Left : std::uint8_t { as_is, number, nan };

  void change_inputs(void (SignChanges::*how)());
  void fill(Left left);
  void fill_bytes(unsigned char byte) const;
  bool is_verified_again();
  bool verify(std::uint64_t found);
  std::uint64_t fingerprint() const;

  TimedPass pass_;
  SignChanges signs_;
  std::mt19937_64 random_;
  std::array<Left, 4> fills_{Left::as_is, Left::as_is, Left::number, Left::nan};
  std::size_t next_fill_ = 0;  ///< index into fills_, which is shuffled at 0
  std::uint64_t verified_;     ///< hash of the verified results
  int same_bits_ = 0;
  int other_bits_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double verifying_s_ = 0;
  Status status_;
};

}  // namespace longca
