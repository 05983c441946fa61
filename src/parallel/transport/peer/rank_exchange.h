#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "core/status.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// Calls `call(peer, whether this rank goes first)` for every other rank, in one order of
/// pairs on all ranks: no two ranks ever wait for each other in turn, even if a send does not
/// return before it is received.
template <typename Call>
void for_each_pair(const RankControl& control, Call&& call) {
  for (int peer = 0; peer < control.size(); ++peer) {
    if (peer != control.rank()) call(peer, control.rank() < peer);
  }
}

/// Every rank's record, by rank. Collective.
template <typename Record>
std::vector<Record> exchange_records(RankControl& control, const Record& mine) {
  static_assert(std::is_trivially_copyable_v<Record>);
  std::vector<Record> records(static_cast<std::size_t>(control.size()), mine);
  for_each_pair(control, [&](int peer, bool first) {
    Record& theirs = records[static_cast<std::size_t>(peer)];
    if (first) control.send(peer, &mine, sizeof(Record));
    control.receive(peer, &theirs, sizeof(Record));
    if (!first) control.send(peer, &mine, sizeof(Record));
  });
  return records;
}

/// The first refusal among all ranks' answers, on every rank, its sentence opened by "rank N: " if
/// not all ranks refuse for the same reason; ok if there is none. Collective.
Support agree(RankControl& control, const Support& mine);

}  // namespace longca
