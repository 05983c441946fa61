#pragma once

#include <memory>

#include "core/status.h"
#include "parallel/comm/communicator.h"

namespace longca {

/// How `peer` moves messages; the defaults are what measured best on H200s.
struct PeerOptions {
  /// Messages of one exchange to different ranks go on so many streams; those to one rank on one.
  int streams = 4;
  /// Rows of at least so many bytes are pushed by the copy engines, narrower ones by a kernel.
  std::int64_t engine_row_bytes = 4096;
  /// Thread blocks of that kernel.
  int kernel_blocks = 32;
};

/// Messages inside one host, pushed by the sender straight into the receiver's memory: by the copy
/// engines, which leave the SMs to the kernels; rows too narrow for those by a kernel that writes
/// to the peer. Numbers in device memory order them, all queued on streams, none waits on the host:
///   - the receiver writes the number of the message that may come into the sender's memory, once
///     its stream has come so far that the buffer may be overwritten;
///   - the sender waits for that, pushes, and writes the number into the receiver's memory;
///   - the receiver waits for it.
/// All groups and barriers of a pass are started in the same order on every rank, groups on one
/// stream. Collective.
std::unique_ptr<Communicator> make_peer_communicator(RankControl& control,
                                                     const PeerOptions& options = {});

}  // namespace longca
