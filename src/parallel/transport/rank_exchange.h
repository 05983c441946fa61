#pragma once

#include <string>
#include <type_traits>
#include <vector>

#include "core/status.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// Calls `call(peer, first)` for every other rank; `first` says whether this rank sends first. All
/// ranks visit the pairs in one global order, so blocking sends cannot deadlock.
template <typename Call>
void for_each_pair(const RankControl& control, Call&& call) {
  for (int peer = 0; peer < control.size(); ++peer) {
    if (peer != control.rank()) call(peer, control.rank() < peer);
  }
}

/// Returns every rank's record, indexed by rank. Collective.
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

/// Returns on every rank the first refusal among the ranks' answers, or ok. Its reason begins with
/// "rank N: " unless all ranks refuse for the same reason. Collective.
Support agree(RankControl& control, const Support& mine);

}  // namespace longca
