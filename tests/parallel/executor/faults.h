#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>

#include "parallel/executor/executor.h"
#include "parallel/transport/communicator.h"

namespace longca::test {

/// Computes as another computer does. The faults below are made of it.
class ForwardingComputer : public StepComputer {
 public:
  explicit ForwardingComputer(std::unique_ptr<StepComputer> inner) : inner_(std::move(inner)) {}
  Support prepare(const RankPlan& plan, bool backward, int op, const OpViews& views) override {
    return inner_->prepare(plan, backward, op, views);
  }
  void ready() override { inner_->ready(); }
  void run(bool backward, int op, Stream stream) override { inner_->run(backward, op, stream); }
  void expect_early(int op) override { inner_->expect_early(op); }
  bool has_early(int op) const override { return inner_->has_early(op); }
  void run_early(int op, Stream stream) override { inner_->run_early(op, stream); }
  std::int64_t workspace_bytes() const override { return inner_->workspace_bytes(); }
  std::map<std::string, std::string> notes() const override { return inner_->notes(); }

 private:
  std::unique_ptr<StepComputer> inner_;
};

/// Merges results without their lse: before every step that merges, the rows that it merges into
/// are made to look as heavy as a row can be whose lse is 0.
class LseDropped final : public ForwardingComputer {
 public:
  using ForwardingComputer::ForwardingComputer;
  Support prepare(const RankPlan& plan, bool backward, int op, const OpViews& views) override {
    if (!backward) {
      const Op& what = plan.forward[static_cast<std::size_t>(op)];
      const auto* attend = std::get_if<Attend>(&what.what);
      if (attend != nullptr && !attend->first) merged_[op] = views.lses.at(0);
    }
    return ForwardingComputer::prepare(plan, backward, op, views);
  }
  void run(bool backward, int op, Stream stream) override {
    const auto merged = merged_.find(op);
    if (!backward && merged != merged_.end()) {
      const LseView& lse = merged->second;
      for (std::int64_t h = 0; h < lse.heads; ++h) {
        for (std::int64_t t = 0; t < lse.tokens; ++t) lse.head(h)[t] = 0;
      }
    }
    ForwardingComputer::run(backward, op, stream);
  }

 private:
  std::map<int, LseView> merged_;
};

/// Moves messages as another communicator does.
class ForwardingCommunicator : public Communicator {
 public:
  explicit ForwardingCommunicator(Communicator& inner) : inner_(inner) {}
  std::string name() const override { return inner_.name(); }
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string version() const override { return inner_.version(); }
  void* allocate(std::int64_t bytes) override { return inner_.allocate(bytes); }
  int prepare(const TransferGroup& group) override { return inner_.prepare(group); }
  void start(int group, Stream stream) override {
    const std::int64_t before = inner_.bytes_sent();
    inner_.start(group, stream);
    count_sent(inner_.bytes_sent() - before);
  }
  void expect(std::span<const int> groups, Stream stream) override {
    inner_.expect(groups, stream);
  }
  void finish(int group) override { inner_.finish(group); }
  void progress() override { inner_.progress(); }
  void barrier(Stream stream) override { inner_.barrier(stream); }

 private:
  Communicator& inner_;
};

/// Lets two chunks of one shape that come from one rank land in each other's place: the first such
/// pair.
class ChunksSwapped final : public ForwardingCommunicator {
 public:
  /// `on_swap` hears of the pair.
  explicit ChunksSwapped(Communicator& inner, std::function<void()> on_swap = {})
      : ForwardingCommunicator(inner), on_swap_(std::move(on_swap)) {}
  int prepare(const TransferGroup& group) override {
    TransferGroup wrong = group;
    for (std::size_t i = 0; i < wrong.receives.size(); ++i) {
      for (std::size_t j = i + 1; j < wrong.receives.size() && !done_; ++j) {
        Transfer& a = wrong.receives[i];
        Transfer& b = wrong.receives[j];
        if (a.peer != b.peer || a.rows != b.rows || a.row_bytes != b.row_bytes) continue;
        std::swap(a.data, b.data);
        std::swap(a.stride_bytes, b.stride_bytes);
        done_ = true;
        if (on_swap_) on_swap_();
      }
    }
    return ForwardingCommunicator::prepare(wrong);
  }

 private:
  std::function<void()> on_swap_;
  bool done_ = false;
};

}  // namespace longca::test
