#pragma once

#include <span>
#include <string>
#include <vector>

#include "parallel/plan/plan.h"

namespace longca::testing {

/// One end of a message: the index-th of the sends or receives of an exchange.
struct MessageEnd {
  int rank = 0;
  int op = 0;
  int index = 0;
};

struct MatchedMessage {
  MessageEnd send;
  MessageEnd receive;
};

/// The messages of a pass: the n-th that rank a sends to b with the n-th that b receives from a.
/// Adds a fault for halves without another, and for pairs that differ in shape or element type.
std::vector<MatchedMessage> match_messages(std::span<const RankPlan> plans, bool backward,
                                           std::vector<std::string>& faults);

struct Event {
  int rank = 0;
  int op = 0;
  bool begin = true;  ///< else the op's end
};

/// The events of a pass in one order in which they can happen on two lanes per rank: an exchange
/// ends when the peers of all its messages have begun theirs. Adds a fault that says who waits for
/// what if the ranks come to a standstill; then the events are those before it.
///
/// Ranks of one thread, which begin their ops in the order of the list, stand still only where
/// lanes do: such a thread waits for an exchange in flight, whose peer has one before it in flight,
/// and so on in a circle; exchanges of a rank are in one order, so lanes would be caught in it too.
std::vector<Event> run_schedule(std::span<const RankPlan> plans, bool backward,
                                std::span<const MatchedMessage> messages,
                                std::vector<std::string>& faults);

}  // namespace longca::testing
