#pragma once

#include <cstddef>
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

/// Returns every rank's record, indexed by rank. Collective; n (n − 1) messages.
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

/// Returns on every rank what rank 0 makes of all records, which are indexed by rank: `make` is
/// called there alone. Collective: none returns before all have called. 2 (n − 1) messages.
template <typename Record, typename Make>
auto let_first_decide(RankMessages& control, const Record& mine, Make&& make) {
  using Decision = std::invoke_result_t<Make, const std::vector<Record>&>;
  static_assert(std::is_trivially_copyable_v<Record> && std::is_trivially_copyable_v<Decision>);
  Decision decision{};
  if (control.rank() != 0) {
    control.send(0, &mine, sizeof(Record));
    control.receive(0, &decision, sizeof(Decision));
    return decision;
  }
  std::vector<Record> records(static_cast<std::size_t>(control.size()), mine);
  for (int rank = 1; rank < control.size(); ++rank) {
    control.receive(rank, &records[static_cast<std::size_t>(rank)], sizeof(Record));
  }
  decision = make(records);
  for (int rank = 1; rank < control.size(); ++rank) {
    control.send(rank, &decision, sizeof(Decision));
  }
  return decision;
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
