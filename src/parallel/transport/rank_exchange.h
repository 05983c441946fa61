#pragma once

#include <exception>
#include <string>
#include <type_traits>
#include <vector>

#include "core/memory.h"
#include "core/status.h"
#include "parallel/transport/communicator.h"

namespace longca {

/// Calls `call(peer, first)` for every other rank; `first` says whether this rank sends first. All
/// ranks visit the pairs in one global order, so blocking sends cannot deadlock.
template <typename Call>
void for_each_pair(const RankMessages& control, Call&& call) {
  for (int peer = 0; peer < control.size(); ++peer) {
    if (peer != control.rank()) call(peer, control.rank() < peer);
  }
}

/// Returns every rank's record, indexed by rank. Collective.
template <typename Record>
std::vector<Record> exchange_records(RankMessages& control, const Record& mine) {
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
Support agree(RankMessages& control, const Support& mine);

/// Throws on every rank if one of them failed, so that none waits for it. Collective.
void throw_together(RankMessages& control, const Support& mine);

/// Runs `call` and returns its exception as a status.
template <typename Call>
Support attempt(Call&& call) {
  try {
    call();
    return {};
  } catch (const OutOfMemory& error) {
    return {StatusCode::oom, error.what()};
  } catch (const std::exception& error) {
    return {StatusCode::crash, error.what()};
  }
}

}  // namespace longca
