#include "bench/cell/repetition_check.h"

#include <algorithm>
#include <set>
#include <utility>

#include "bench/cell/steps.h"

namespace longca {
namespace {

/// The first kAlwaysVerified repetitions with other bits than the verified ones are verified in
/// full, later ones with a chance of one in kOneIn, as long as verifying takes no more than
/// kShareForVerifying of the time since construction.
constexpr int kAlwaysVerified = 16;
constexpr int kOneIn = 4;
constexpr double kShareForVerifying = 0.5;

/// The KV heads whose columns affect results that are verified.
std::vector<std::int64_t> heads_that_show(const TimedPass& pass) {
  const std::int64_t group = pass.tensors.q.heads / pass.tensors.k.heads;
  std::set<std::int64_t> heads;
  for (const Range& range : pass.checked.q) {
    for (std::int64_t head = range.begin; head < range.end; ++head) heads.insert(head / group);
  }
  for (const Range& range : pass.checked.k) {
    for (std::int64_t head = range.begin; head < range.end && pass.pass != Pass::forward; ++head) {
      heads.insert(head);
    }
  }
  return {heads.begin(), heads.end()};
}

}  // namespace

RepetitionCheck::RepetitionCheck(TimedPass pass)
    : pass_(std::move(pass)),
      signs_(pass_.device, pass_.tensors, pass_.pass, heads_that_show(pass_), pass_.seed),
      random_(~pass_.seed),
      verified_(fingerprint()) {}

RepetitionCheck::~RepetitionCheck() {
  try {
    signs_.undo();
  } catch (...) {  // the device is lost, and the inputs with it
  }
}

TimedWork RepetitionCheck::around(std::function<void()> call) {
  return {.call = std::move(call),
          .prepare = [this] { prepare(); },
          .between = [this] { change_inputs(&SignChanges::draw_more); },
          .check = [this] { return check(); },
          .after_check = [this] { after_check(); },
          .results = result_bytes(pass_.tensors, pass_.pass)};
}

void RepetitionCheck::fail_unfinished_work() {
  status_ = {StatusCode::wrong,
             "in a repetition with other inputs: its results were still changing after the call "
             "had ended"};
}

void RepetitionCheck::prepare() {
  change_inputs(&SignChanges::draw);
  if (next_fill_ == 0) std::ranges::shuffle(fills_, random_);
  fill(fills_.at(next_fill_));
  next_fill_ = (next_fill_ + 1) % fills_.size();
}

void RepetitionCheck::change_inputs(void (SignChanges::*how)()) {
  if (pass_.inputs_stay) return;
  (signs_.*how)();
  if (pass_.forward) pass_.forward();
}

void RepetitionCheck::fill(Left left) {
  // If inputs stay, what the call before left would be right.
  if (left == Left::as_is && pass_.inputs_stay) left = Left::nan;
  // Each of these bytes, repeated, is a number of 0.01 to 1.5 in magnitude in every dtype.
  constexpr std::array<unsigned char, 8> kNumbers{0x3c, 0x3d, 0x3e, 0x3f, 0xbc, 0xbd, 0xbe, 0xbf};
  if (left == Left::number) fill_bytes(kNumbers.at(random_() % kNumbers.size()));
  if (left == Left::nan) poison();
}

void RepetitionCheck::poison() const {
  fill_bytes(kPoison);
}

void RepetitionCheck::fill_bytes(unsigned char byte) const {
  fill_results(pass_.device, pass_.tensors, pass_.pass, byte);
}

bool RepetitionCheck::check() {
  signs_.follow();
  const std::uint64_t found = fingerprint();
  bool passed = true;
  if (!pass_.any(found != verified_)) {
    ++same_bits_;
  } else {
    passed = !is_verified_again() || verify(found);
  }
  signs_.follow_back();
  return passed;
}

bool RepetitionCheck::is_verified_again() {
  if (other_bits_++ < kAlwaysVerified) return true;
  if (random_() % kOneIn != 0) return false;
  return pass_.any(verifying_s_ < kShareForVerifying * seconds_since(begin_));
}

bool RepetitionCheck::verify(std::uint64_t found) {
  signs_.undo();
  const auto begin = SteadyClock::now();
  status_ = pass_.verify();
  verifying_s_ += seconds_since(begin);
  if (pass_.any(fingerprint() != found)) {
    status_ = {StatusCode::wrong, "its results were still changing after the call had ended"};
  }
  if (!status_.ok()) status_.reason = "in a repetition with other inputs: " + status_.reason;
  return status_.ok();
}

std::uint64_t RepetitionCheck::fingerprint() const {
  return hash_results(pass_.device, pass_.tensors, pass_.pass);
}

}  // namespace longca
