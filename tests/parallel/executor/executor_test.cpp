// The order in which an executor starts, finishes and computes, and the memory that it gives a
// plan, seen by a communicator and a computer that only write down what they are asked.
#include "parallel/executor/executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace longca::test {
namespace {

using Log = std::vector<std::string>;
using testing::ElementsAre;

class WritingCommunicator final : public Communicator {
 public:
  explicit WritingCommunicator(Log& log) : log_(log) {}
  std::string name() const override { return "none"; }
  int rank() const override { return 0; }
  int size() const override { return 2; }
  std::string version() const override { return {}; }
  void* allocate(std::int64_t bytes) override {
    allocated.push_back(bytes);
    return memory_.emplace_back(bytes).data();
  }
  int prepare(const TransferGroup& group) override {
    groups.push_back(group);
    return static_cast<int>(groups.size()) - 1;
  }
  void expect(std::span<const int> coming, Stream) override {
    expected.emplace_back(coming.begin(), coming.end());
  }
  void start(int group, Stream) override {
    const bool known = !expected.empty() && std::ranges::count(expected.back(), group) == 1;
    log_.push_back((known ? "start " : "unexpected ") + std::to_string(group));
  }
  void finish(int group) override { log_.push_back("finish " + std::to_string(group)); }
  void barrier(Stream) override {}

  std::vector<TransferGroup> groups;
  std::vector<std::vector<int>> expected;
  std::vector<std::int64_t> allocated;

 private:
  Log& log_;
  std::vector<HostBuffer> memory_;
};

class WritingComputer final : public StepComputer {
 public:
  explicit WritingComputer(Log& log) : log_(log) {}
  Support prepare(const RankPlan&, bool backward, int op, const OpViews& views) override {
    prepared.push_back(views);
    if (!backward && op == refused) return Support::unsupported("it cannot");
    return {};
  }
  void ready() override { is_ready = true; }
  void run(bool backward, int op, Stream) override {
    log_.push_back((backward ? "backward op " : "op ") + std::to_string(op));
  }
  void expect_early(int op) override {
    EXPECT_FALSE(is_ready);
    expected_early.push_back(op);
  }
  bool has_early(int op) const override { return op != without_early; }
  void run_early(int op, Stream) override { log_.push_back("early op " + std::to_string(op)); }
  std::int64_t workspace_bytes() const override { return 0; }
  std::map<std::string, std::string> notes() const override { return {}; }

  int refused = -1;
  bool is_ready = false;
  std::vector<OpViews> prepared;
  std::vector<int> expected_early;
  int without_early = -1;

 private:
  Log& log_;
};

PlanBuffer buffer(TensorRole role, std::int64_t tokens, int heads) {
  return {.name = std::string(to_string(role)), .role = role, .tokens = tokens, .heads = heads};
}

Op compute(int from, int to, std::vector<int> after = {}) {
  const Region a{from, {0, 4}, {0, 2}}, b{to, {0, 4}, {0, 2}};
  return {.what = Copy{a, b}, .after = std::move(after), .lane = Lane::compute};
}

Op send(int from, std::vector<int> after = {}) {
  Exchange exchange;
  exchange.sends = {{1, {from, {0, 4}, {0, 2}}}};
  return {.what = exchange, .after = std::move(after), .lane = Lane::communication};
}

Op receive(int to, std::vector<int> after = {}) {
  Exchange exchange;
  exchange.receives = {{1, {to, {0, 4}, {0, 2}}}};
  return {.what = exchange, .after = std::move(after), .lane = Lane::communication};
}

/// A plan of rank 0 of two with `buffers` tensors of 4 tokens and 2 heads.
RankPlan plan_with(int buffers, std::vector<Op> forward, std::vector<Op> backward = {}) {
  RankPlan plan;
  plan.ranks = 2;
  for (int i = 0; i < buffers; ++i) plan.buffers.push_back(buffer(TensorRole::k, 4, 2));
  plan.forward = std::move(forward);
  plan.backward = std::move(backward);
  return plan;
}

/// An executor of a plan on the CPU, head dimension 8, float32: a buffer has 256 bytes.
struct Made {
  explicit Made(RankPlan p, int refused = -1, int without_early = -1) : plan(std::move(p)) {
    computer.refused = refused;
    computer.without_early = without_early;
    Problem problem;
    problem.head_dim = 8;
    executor = std::make_unique<Executor>(plan, problem, RankTensors{}, communicator, computer);
  }
  Log log;
  RankPlan plan;
  WritingCommunicator communicator{log};
  WritingComputer computer{log};
  std::unique_ptr<Executor> executor;
};

TEST(Executor, FinishesAnExchangeForTheOpThatNamesIt) {
  const Made made(plan_with(4, {receive(0), receive(1), compute(2, 3), compute(0, 2, {0})}));
  made.executor->forward(nullptr);
  EXPECT_THAT(made.log, ElementsAre("start 0", "start 1", "op 2", "finish 0", "op 3", "finish 1"));
}

TEST(Executor, FinishesWhatStandsBeforeANamedExchangeOfItsLane) {
  const Made made(plan_with(4, {receive(0), receive(1), compute(0, 2, {1})}));
  made.executor->forward(nullptr);
  EXPECT_THAT(made.log, ElementsAre("start 0", "start 1", "finish 0", "finish 1", "op 2"));
}

TEST(Executor, FinishesAnExchangeForAnotherThatTouchesWhatItMoves) {
  const Made made(plan_with(4, {receive(0), receive(1), send(0), receive(1)}));
  made.executor->forward(nullptr);
  EXPECT_THAT(made.log, ElementsAre("start 0", "start 1", "finish 0", "start 2", "finish 1",
                                    "start 3", "finish 2", "finish 3"));
}

TEST(Executor, FinishesAnExchangeForACopyBesideIt) {
  Op copy = compute(0, 3);
  copy.lane = Lane::communication;
  const Made made(plan_with(4, {receive(0), receive(1), copy, compute(3, 2, {2})}));
  made.executor->forward(nullptr);
  EXPECT_THAT(made.log, ElementsAre("start 0", "start 1", "finish 0", "op 2", "finish 1", "op 3"));
}

/// Over rows of buffer 0 and keys of buffer `keys`.
Op attend_backward(int keys, std::vector<int> after = {}) {
  const Region rows{0, {0, 4}, {0, 2}}, columns{keys, {0, 4}, {0, 2}}, results{1, {0, 4}, {0, 2}};
  return {
      .what = AttendBackward{rows, rows, columns, columns, rows, rows, results, results, results},
      .after = std::move(after)};
}

TEST(Executor, BeginsWithTheRowsOfLaterOpsBeforeItWaits) {
  Made made(plan_with(5, {receive(4), compute(2, 3, {0})},
                      {receive(2), receive(3), attend_backward(4), attend_backward(2, {0}),
                       compute(2, 4), attend_backward(3, {1})}));
  EXPECT_THAT(made.computer.expected_early, ElementsAre(3, 5));
  made.executor->forward(nullptr);
  EXPECT_THAT(made.log, ElementsAre("start 0", "finish 0", "op 1"));
  made.log.clear();
  for (int i = 0; i < 2; ++i) {
    made.executor->backward(nullptr);
    EXPECT_THAT(made.log, ElementsAre("start 1", "start 2", "backward op 2", "early op 3",
                                      "early op 5", "finish 1", "backward op 3", "backward op 4",
                                      "finish 2", "backward op 5"));
    made.log.clear();
  }
  made.executor->backward(nullptr, false);
  EXPECT_THAT(made.log, ElementsAre("backward op 2", "early op 3", "early op 5", "backward op 3",
                                    "backward op 4", "backward op 5"));
}

TEST(Executor, BeginsWithTheRowsThatTheComputerCanBeginWith) {
  const auto times = make_lane_times(DeviceKind::cpu);
  const auto spans = [&](int without_early) {
    Made made(plan_with(4, {}, {receive(2), attend_backward(2, {0}), attend_backward(3)}), -1,
              without_early);
    made.executor->backward(nullptr, true, times.get());
    std::vector<int> ops;
    for (const OpTime& time : times->times()) ops.push_back(time.op);
    EXPECT_EQ(std::ranges::count(made.log, "early op 1"), without_early == 1 ? 0 : 1);
    EXPECT_EQ(std::ranges::count(made.log, "early op 2"), 1);
    return ops;
  };
  EXPECT_THAT(spans(1), ElementsAre(kEarlyRows, 0, 1, 2));
  EXPECT_THAT(spans(-1), ElementsAre(kEarlyRows, 0, 1, 2));
  Made none(plan_with(3, {}, {receive(2), attend_backward(2, {0})}), -1, 1);
  none.executor->backward(nullptr, true, times.get());
  EXPECT_EQ(times->times().size(), 2U);
}

TEST(Executor, BeginsWithNoRowsThatArrive) {
  Made made(plan_with(3, {}, {receive(0), attend_backward(2, {0})}));
  EXPECT_THAT(made.computer.expected_early, ElementsAre());
  made.executor->backward(nullptr);
  EXPECT_THAT(made.log, ElementsAre("start 0", "finish 0", "backward op 1"));
}

TEST(Executor, LeavesExchangesOut) {
  const Made made(plan_with(4, {receive(0), compute(0, 2, {0})}, {send(1), compute(2, 3, {0})}));
  made.executor->forward(nullptr, false);
  made.executor->backward(nullptr, false);
  EXPECT_THAT(made.log, ElementsAre("op 1", "backward op 1"));
}

TEST(Executor, RunsAgain) {
  const Made made(plan_with(2, {receive(0)}, {receive(1)}));
  made.executor->forward(nullptr);
  made.executor->backward(nullptr);
  made.executor->forward(nullptr);
  EXPECT_THAT(made.log,
              ElementsAre("start 0", "finish 0", "start 1", "finish 1", "start 0", "finish 0"));
}

TEST(Executor, NamesTheStepThatIsRefused) {
  RankPlan plan;
  plan.buffers = {buffer(TensorRole::q, 4, 2), buffer(TensorRole::k, 6, 1),
                  buffer(TensorRole::v, 6, 1), buffer(TensorRole::o, 4, 2),
                  buffer(TensorRole::lse, 4, 2)};
  plan.masks = {Mask::from_slices(4, 6, {{0, 2, 0, 6}, {2, 4, 0, 6}})};
  plan.forward = {
      {.what = Attend{plan.whole(0), plan.whole(1), plan.whole(2), plan.whole(3), plan.whole(4)},
       .after = {},
       .step = 3}};
  plan.backward = plan.forward;
  const Made made(plan, 0);
  EXPECT_EQ(made.executor->support().code, StatusCode::unsupported);
  EXPECT_EQ(made.executor->support().reason, "step 3 (4 × 6, 2 slices): it cannot");
  EXPECT_EQ(made.computer.prepared.size(), 1U);
  EXPECT_FALSE(made.computer.is_ready);
  EXPECT_THROW(made.executor->forward(nullptr), std::logic_error);
}

TEST(Executor, HandsOverRegionsAsTransfers) {
  RankPlan plan = plan_with(1, {});
  plan.buffers.push_back(buffer(TensorRole::lse, 10, 3));
  Exchange exchange;
  exchange.sends = {{1, {0, {1, 3}, {0, 2}}}, {1, {0, {0, 4}, {1, 2}}}, {1, {1, {4, 9}, {1, 3}}}};
  exchange.receives = {{1, {0, {2, 2}, {0, 2}}}};  // nothing
  plan.forward = {{.what = exchange, .after = {}, .lane = Lane::communication}};
  const Made made(plan);
  ASSERT_EQ(made.communicator.groups.size(), 1U);
  const TransferGroup& group = made.communicator.groups[0];
  EXPECT_TRUE(group.receives.empty());
  ASSERT_EQ(group.sends.size(), 3U);
  const auto expect = [&](std::size_t i, std::int64_t rows, std::int64_t row_bytes,
                          std::int64_t stride_bytes) {
    EXPECT_EQ(group.sends[i].rows, rows);
    EXPECT_EQ(group.sends[i].row_bytes, row_bytes);
    EXPECT_EQ(group.sends[i].stride_bytes, stride_bytes);
  };
  expect(0, 2, 64, 64);
  expect(1, 4, 32, 64);
  expect(2, 2, 20, 40);
  EXPECT_EQ(
      static_cast<std::byte*>(group.sends[1].data) - static_cast<std::byte*>(group.sends[0].data),
      32 - 64);
}

TEST(Executor, TellsOfExchangesBesideWhichNothingIsComputed) {
  RankPlan plan = plan_with(4, {});
  plan.buffers.push_back(buffer(TensorRole::lse, 4, 2));
  plan.masks = {Mask::from_slices(4, 4, {{0, 4, 0, 4}})};
  const auto attend = [&](std::vector<int> after) -> Op {
    return {
        .what = Attend{plan.whole(0), plan.whole(1), plan.whole(2), plan.whole(3), plan.whole(4)},
        .after = std::move(after)};
  };
  plan.forward = {receive(0),   compute(1, 2), attend({0}),  receive(1), attend({}),
                  send(3, {2}), attend({5}),   send(3, {6}), attend({}), receive(2),
                  attend({9}),  compute(1, 2), send(2, {11})};
  const Made made(plan);
  std::vector<bool> alone;
  for (const TransferGroup& group : made.communicator.groups) alone.push_back(group.alone);
  // In order: awaited by all computing; beside an attend that does not wait; not awaiting the
  // attend before it; beside the next one; not awaiting, although awaited; after all.
  EXPECT_THAT(alone, ElementsAre(true, false, false, false, false, true));
}

TEST(Executor, TellsWhatMayLandEarly) {
  const Made made(plan_with(6,
                            {receive(0), compute(0, 1), receive(0), receive(1), send(2), receive(2),
                             receive(3), receive(3), compute(4, 5), receive(4), receive(5)},
                            {receive(1), receive(4)}));
  std::vector<bool> early;
  for (const TransferGroup& group : made.communicator.groups) early.push_back(group.lands_early);
  // In order: nothing before it; read; written; a send itself; sent before; nothing; landed in
  // before; read; written; and, of the backward pass, nothing.
  EXPECT_THAT(early,
              ElementsAre(true, false, false, true, false, true, false, false, false, true, true));
}

TEST(Executor, SaysWhatAPassWillStart) {
  Made made(plan_with(3, {receive(0), compute(1, 2), receive(2)}, {receive(1)}));
  made.executor->forward(nullptr);
  made.executor->backward(nullptr);
  made.executor->forward(nullptr, false);
  EXPECT_THAT(made.communicator.expected, ElementsAre(ElementsAre(0, 1), ElementsAre(2)));
}

TEST(Executor, AsksForMessageMemoryOnceAndLetsPassesShareIt) {
  // 0: both passes; 1: forward; 2 and 3: backward; 4 and 5 have no messages; 6 is not used.
  const Made made(plan_with(7, {receive(0), receive(1), compute(4, 4)},
                            {send(0), receive(2), receive(3), compute(5, 5)}));
  EXPECT_THAT(made.communicator.allocated, ElementsAre(3 * 256));
  EXPECT_EQ(made.executor->buffer_bytes(), 4 * 256);
}

TEST(Executor, KeepsWhatOutlivesItsPass) {
  RankPlan plan = plan_with(3, {compute(0, 1)}, {compute(2, 2)});
  EXPECT_EQ(Made(plan).executor->buffer_bytes(), 2 * 256);
  plan.results = {
      {.role = TensorRole::k, .region = plan.whole(0), .tokens = {{0, 4}}, .heads = {0, 2}}};
  EXPECT_EQ(Made(plan).executor->buffer_bytes(), 2 * 256);
  plan.buffers[1].kept = true;
  EXPECT_EQ(Made(plan).executor->buffer_bytes(), 3 * 256);
}

TEST(Executor, ChecksTheCallersTensors) {
  RankPlan plan = plan_with(1, {compute(0, 0)});
  plan.buffers[0].external = true;
  EXPECT_THROW(Made{plan}, std::logic_error);  // none was given
}

}  // namespace
}  // namespace longca::test
