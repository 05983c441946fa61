#pragma once

#include <memory>
#include <string>

#include "bench/ranks/exit_codes.h"
#include "bench/run/protocol.h"

namespace longca {

/// Messages between `longca cp` (the parent) and the ranks that mpirun or srun started for it:
/// lines of a LineChannel, one socket per rank, to which the ranks connect. The secret of the
/// channels is made for one start of ranks and passed in their environment.
///
///   longca-rank --connect ADDRESS [--suite-hash TEXT] [--plugin FILE]… [--no-python REASON]
///
/// ADDRESS is the path of a Unix socket, or HOST:PORT where ranks run on several hosts. The parent
/// listens from before it starts the ranks until all of them have said hello; a line of a rank that
/// is none of those below costs the cell. In a launch that already exists (`srun longca cp`) only
/// rank 0 knows the address and the secret: the others get "rank-0", and rank 0 broadcasts both to
/// them. Such a launch may have more ranks than a case: the first `ranks` of them run it, the
/// others wait.
///
///   rank → parent     {"hello": {"rank","ranks","pid","host","commit","suite_hash"}}, once, first
///   rank 0 → parent   {"ready": true} once all ranks have agreed to work together, or else
///                     {"refused": sentence} ("rank 2 runs commit …, rank 0 runs commit …"): then
///                     all ranks end by themselves with exit code 2
///   parent → rank 0   {"case": {…}, "options": {…}} as to a worker, one at a time
///   parent → rank 0   or {"exchanges": [{"transport","shape","bytes","messages","exchanges"}, …],
///                     "limits": {…}}, of one transport over all ranks (longca calibrate)
///   rank → parent     {"stage": "forward"}, any number of them, from every rank: what begins
///   rank → parent     {"at": kWaitsForRanks} when it has waited kLongWait for other ranks,
///                     {"at": "work"} when it continues: shows which rank hangs when none moves
///   rank 0 → parent   {"trace": […]} for each rank in order, before the record, if one was
///                     made: events as by trace_of_rank
///   rank 0 → parent   {"record": {…}, "ends": bool}: without `env` and `at`. "ends": a device is
///                     lost, all ranks end by themselves, and the next case needs new ones
///   rank 0 → parent   {"times": [{"ms","held"}, …]} of exchanges, or {"none": sentence, "status"}
///                     if the ranks cannot use the transport, or a byte that came was wrong
///   rank → parent     {"failed": sentence, "status": "crash" or "oom"}, instead of a record, from
///                     the rank that cannot go on ("threw in forward: …"): it then ends all ranks
///                     by MPI_Abort with exit code 3
///
/// The ranks end with exit code 0 when rank 0's socket closes. Between each and the process that
/// started it (mpirun's daemon) is a keeper: no descendant outlives the rank, nor does the rank
/// that process. Exit code 2: a rank could not connect, MPI did not start, or the ranks refused
/// each other; the sentence is on stderr too.
///
/// The stages are those of CellProblem's StageListener; the first of a cell is "set-up".
struct RankHello {
  int rank = 0;
  int ranks = 1;
  int pid = 0;
  std::string host;
  std::string commit;  ///< of the program: build_info(), with "+" appended if the sources differed
  std::string suite_hash;  ///< of --suite-hash: equal on all ranks, or they refuse
};

void to_json(nlohmann::json& json, const RankHello& hello);
/// Throws nlohmann::json::exception for a key that is missing, of another type, or no int.
void from_json(const nlohmann::json& json, RankHello& hello);

inline constexpr const char* kWaitsForRanks = "waits for other ranks";

/// Connects to the parent. Throws InputError naming the address and the system's reason.
std::unique_ptr<LineChannel> connect_to_parent(const std::string& address, std::string secret);

}  // namespace longca
