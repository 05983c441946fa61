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
  /// Results of these inputs that were verified just before.
  PassTensors tensors;
  Pass pass = Pass::forward;
  /// Whose results are verified.
  CheckedHeads checked;
  /// Of everything that is drawn; from std::random_device, the same on all ranks.
  std::uint64_t seed = 0;
  /// Verifies the results, which are of the inputs as they were; over ranks collective.
  std::function<Status()> verify;
  /// Runs the forward pass on the tensors: for a kernel whose backward pass goes by what its own
  /// forward pass kept. Else empty.
  std::function<void()> forward = {};
  /// Inputs cannot change: the call replays a graph with what an earlier forward pass kept.
  bool inputs_stay = false;
  /// Whether `mine` is true on any rank.
  std::function<bool(bool mine)> any = [](bool mine) { return mine; };
};

/// Makes sure that every timed repetition did the whole work, all of it outside of the times. A
/// kernel can foresee neither what it finds nor what is looked at:
/// - Before each repetition or batch, and between the calls of a batch, inputs change in place
///   (SignChanges), so that no result is that of the call before.
/// - Before each repetition or batch the outputs hold NaN, a number, or what the call before left.
/// - Right after it, all results are compared with the verified ones to the bit. Where bits differ
///   they are verified in full: always at first, then at random. A check leaves the results as it
///   found them, so that the clock sees whether they have changed since the call ended, as they do
///   if its work went on.
class RepetitionCheck {
 public:
  explicit RepetitionCheck(TimedPass pass);
  ~RepetitionCheck();  ///< as `restore`
  RepetitionCheck(const RepetitionCheck&) = delete;
  RepetitionCheck& operator=(const RepetitionCheck&) = delete;

  /// `call` with these checks around it; valid as long as this object.
  TimedWork around(std::function<void()> call);
  void prepare();
  /// Fills the outputs with NaN.
  void poison() const;
  /// False as soon as a repetition failed; `status` says why.
  bool check();
  /// To be called when the clock has looked at the results, too: makes them those of the inputs as
  /// they are, which the next repetition changes.
  void after_check() { signs_.catch_up(); }
  /// The clock has seen that a repetition's work went on behind its time.
  void note_that_it_goes_on();
  const Status& status() const { return status_; }
  /// Makes the inputs what they were.
  void restore() { signs_.undo(); }

  /// Of the repetitions so far: how many gave the bits that were verified, and how many others.
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
  std::array<Left, 4> deck_{Left::as_is, Left::as_is, Left::number, Left::nan};
  std::size_t dealt_ = 0;  ///< of the deck, which is shuffled before its first
  std::uint64_t verified_;
  int same_bits_ = 0;
  int other_bits_ = 0;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  double verifying_s_ = 0;
  Status status_;
};

}  // namespace longca
