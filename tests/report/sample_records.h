#pragma once

#include <vector>

#include "bench/record/record.h"

namespace longca::testing {

/// A small run with every status in it, the same at every call: four masks at two lengths by three
/// kernels, both passes.
std::vector<Record> sample_records();

/// The run of a quick suite: all masks at one length.
std::vector<Record> all_mask_records();

/// A run on a GPU whose clock and power were sampled; it was throttled in the second cell.
std::vector<Record> traced_records();

/// A run over ranks: three schemes, one of them with two shards, at 1, 2 and 4 ranks of two masks,
/// 1K tokens per rank, both passes; ulysses stops at 2 ranks for want of heads, one cell lost a
/// rank, and one sent more than its formula says.
std::vector<Record> over_ranks_records();

/// At 2 ranks, 2K tokens: ulysses, ring_p2p and usp with two kernels, naive also with usp through
/// nccl; flash has no causal_document.
std::vector<Record> two_kernels_records();

/// The same work on one device, at the lengths of 1, 2 and 4 ranks; full only.
std::vector<Record> one_device_records();

/// Records that hold kHostileText wherever a text can be.
std::vector<Record> hostile_records();

/// Text that every view must show as text: markup, quotes, separators, formulas, line breaks, what
/// steers a terminal or turns the direction of text.
inline constexpr const char* kHostileText =
    "=1+1 <script>document.title='injected'</script> & \"quoted\", 'single' | pipe `tick` \\back "
    "\u2028 \033[2J\n\r\u0085\u202e end";

}  // namespace longca::testing
