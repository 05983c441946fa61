#include "bench/cell/repetition_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <string>
#include <thread>

#include "bench/cell/timed_kernel.h"

namespace longca::testing {
namespace {

using ::testing::HasSubstr;

/// `naive` under the check. `verify` says what `verdict` is, and counts.
struct Checked {
  explicit Checked(Pass pass = Pass::forward) : kernel("naive", DType::float32, pass) {
    kernel.call();
    results = kernel.results();
    input_bits = kernel.input_bits();
  }

  TimedPass pass() {
    return {.device = TimedKernel::device(),
            .tensors = kernel.tensors(),
            .pass = kernel.pass,
            .checked = {{{0, 4}}, {{0, 2}}},
            .seed = 5,
            .verify = [this] {
              ++verified;
              inputs_were_undone &= kernel.input_bits() == input_bits;
              if (while_verifying) while_verifying();
              return verdict;
            }};
  }
  /// The first element of the first result.
  float& first() const {
    const PassTensors t = kernel.tensors();
    return *(kernel.pass == Pass::backward ? t.dq : t.o).row<float>(0, 0);
  }

  TimedKernel kernel;
  std::uint64_t results = 0;
  std::uint64_t input_bits = 0;
  Status verdict;
  int verified = 0;
  bool inputs_were_undone = true;
  std::function<void()> while_verifying;
};

TEST(RepetitionCheck, WorkThatIsDoneIsOkWithoutBeingVerifiedAgain) {
  for (const Pass pass : kPasses) {
    Checked checked(pass);
    {
      RepetitionCheck check(checked.pass());
      const TimedWork work = check.around([&] { checked.kernel.call(); });
      for (int i = 0; i < 40; ++i) {
        work.prepare();
        EXPECT_NE(checked.kernel.input_bits(), checked.input_bits);
        for (int calls = 0; calls <= i % 4; ++calls) {
          if (calls > 0) work.between();
          work.call();
        }
        EXPECT_TRUE(work.check());
      }
      EXPECT_EQ(check.same_bits(), 40);
      EXPECT_EQ(check.other_bits(), 0);
      EXPECT_EQ(check.verified_bits(), checked.results);
    }
    EXPECT_EQ(checked.verified, 0);
    EXPECT_EQ(checked.kernel.input_bits(), checked.input_bits);
  }
}

TEST(RepetitionCheck, OutputsHoldWhatTheCallBeforeLeftANumberOrNan) {
  Checked checked;
  RepetitionCheck check(checked.pass());
  int as_is = 0, number = 0, nan = 0;
  for (int i = 0; i < 40; ++i) {
    checked.kernel.call();
    checked.first() = 123;
    check.prepare();
    const float found = checked.first();
    if (std::isnan(found)) {
      ++nan;
    } else {
      found == 123 ? ++as_is : ++number;
    }
  }
  EXPECT_EQ(as_is, 20);
  EXPECT_EQ(number, 10);
  EXPECT_EQ(nan, 10);
}

TEST(RepetitionCheck, ACallThatDoesNothingIsNoticedAtOnce) {
  for (const Pass pass : kPasses) {
    Checked checked(pass);
    RepetitionCheck check(checked.pass());
    for (int i = 0; i < 12; ++i) {
      check.prepare();
      checked.kernel.call();
      if (i % 3 == 2) checked.first() += 1;  // so that it is verified, of the inputs as they were
      EXPECT_TRUE(check.check());
      check.after_check();
      check.prepare();
      const int before = checked.verified;
      check.check();
      EXPECT_EQ(checked.verified, before + 1);
    }
    EXPECT_TRUE(checked.inputs_were_undone);
  }
}

TEST(RepetitionCheck, SoIsOneThatIsSkippedInABatch) {
  for (const Pass pass : kPasses) {
    Checked checked(pass);
    RepetitionCheck check(checked.pass());
    const TimedWork work = check.around([] {});
    work.prepare();
    checked.kernel.call();
    work.between();
    EXPECT_TRUE(work.check());
    EXPECT_EQ(checked.verified, 1);
  }
}

TEST(RepetitionCheck, WhatVerificationSaysCounts) {
  Checked checked;
  RepetitionCheck check(checked.pass());
  checked.verdict = {StatusCode::wrong, "o is 1 instead of 2"};
  check.prepare();
  checked.kernel.call();
  checked.first() += 1;
  EXPECT_FALSE(check.check());
  EXPECT_EQ(check.status().code, StatusCode::wrong);
  EXPECT_EQ(check.status().reason, "in a repetition with other inputs: o is 1 instead of 2");
}

TEST(RepetitionCheck, ResultsThatChangeAfterTheCallAreWrong) {
  Checked checked;
  RepetitionCheck check(checked.pass());
  checked.while_verifying = [&] { checked.kernel.call(); };
  check.prepare();
  EXPECT_FALSE(check.check());
  EXPECT_THAT(check.status().reason,
              HasSubstr("its results were still changing after the call had ended"));
}

TEST(RepetitionCheck, LeavesTheResultsAsItFoundThem) {
  for (const Pass pass : kPasses) {
    Checked checked(pass);
    RepetitionCheck check(checked.pass());
    for (int i = 0; i < 10; ++i) {
      check.prepare();
      checked.kernel.call();
      if (i % 2 == 1) checked.first() += 1;  // so that they are verified again
      const std::uint64_t left = checked.kernel.results();
      EXPECT_TRUE(check.check());
      EXPECT_EQ(checked.kernel.results(), left);
    }
    EXPECT_EQ(checked.verified, 5);
  }
}

TEST(RepetitionCheck, OfAKernelThatRoundsOtherwiseEachTimeSomeAreVerified) {
  Checked checked;
  RepetitionCheck check(checked.pass());
  constexpr int kRepetitions = 400;
  for (int i = 0; i < kRepetitions; ++i) {
    check.prepare();
    checked.kernel.call();
    checked.first() = std::nextafter(checked.first(), 10.0F);
    EXPECT_TRUE(check.check());
  }
  EXPECT_EQ(check.other_bits(), kRepetitions);
  EXPECT_GT(checked.verified, 16 + (kRepetitions - 16) / 8);
  EXPECT_LT(checked.verified, 16 + (kRepetitions - 16) / 2);
}

TEST(RepetitionCheck, VerifyingTakesNoMoreThanHalfOfTheTimeAfterTheFirst) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kVerifying{1};
  Checked checked;
  checked.while_verifying = [&] { std::this_thread::sleep_for(kVerifying); };
  const auto begin = Clock::now();
  RepetitionCheck check(checked.pass());
  constexpr int kMostRepetitions = 100'000;  // some milliseconds of them are needed
  for (int i = 0; checked.verified < 20 && i < kMostRepetitions; ++i) {
    check.prepare();
    checked.kernel.call();
    checked.first() = std::nextafter(checked.first(), 10.0F);
    EXPECT_TRUE(check.check());
  }
  ASSERT_EQ(checked.verified, 20);
  // Before the last one, all others had taken less than half.
  EXPECT_LE((checked.verified - 1) * kVerifying, (Clock::now() - begin) / 2);
}

TEST(RepetitionCheck, TheForwardPassFollowsChangesOfItsInputs) {
  Checked checked(Pass::backward);
  int forwards = 0;
  TimedPass pass = checked.pass();
  pass.forward = [&] {
    ++forwards;
    checked.kernel.forward();
  };
  RepetitionCheck check(std::move(pass));
  const TimedWork work = check.around([&] { checked.kernel.call(); });
  for (int i = 0; i < 10; ++i) {
    work.prepare();
    work.call();
    work.between();
    work.call();
    EXPECT_TRUE(work.check());
  }
  EXPECT_EQ(forwards, 20);
  EXPECT_EQ(check.same_bits(), 10);
  check.restore();
  EXPECT_EQ(checked.kernel.input_bits(), checked.input_bits);
}

TEST(RepetitionCheck, InputsThatStayGoWithOutputsThatAreNeverRightBefore) {
  Checked checked(Pass::backward);
  TimedPass pass = checked.pass();
  pass.inputs_stay = true;
  RepetitionCheck check(std::move(pass));
  for (int i = 0; i < 12; ++i) {
    check.prepare();
    EXPECT_EQ(checked.kernel.input_bits(), checked.input_bits);
    EXPECT_NE(checked.kernel.results(), checked.results);
    checked.kernel.call();
    EXPECT_TRUE(check.check());
  }
  EXPECT_EQ(check.same_bits(), 12);
}

TEST(RepetitionCheck, AnotherRanksBitsAreVerifiedOnAll) {
  Checked checked;
  TimedPass pass = checked.pass();
  pass.any = [](bool) { return true; };
  RepetitionCheck check(std::move(pass));
  check.prepare();
  checked.kernel.call();
  EXPECT_FALSE(check.check()) << "results that change on another rank are not this one's to trust";
  EXPECT_EQ(checked.verified, 1);
}

/// A step whose backward pass is right and whose forward pass is left out, or the other way round.
TEST(RepetitionCheck, AStepIsBothPasses) {
  for (const Pass done : {Pass::forward, Pass::backward}) {
    Checked checked(Pass::step);
    checked.verdict = {StatusCode::wrong, "half of it"};
    RepetitionCheck check(checked.pass());
    check.prepare();
    check.poison();
    checked.kernel.pass = done;
    checked.kernel.call();
    checked.kernel.pass = Pass::step;
    EXPECT_FALSE(check.check()) << to_string(done);
    EXPECT_EQ(checked.verified, 1);
  }
}

}  // namespace
}  // namespace longca::testing
