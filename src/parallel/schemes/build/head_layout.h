#pragma once

#include <vector>

#include "core/status.h"
#include "mask/mask_slice.h"

namespace longca {

/// Query heads of a rank that are computed together, and the run of KV heads that they read. Both
/// numbered inside the rank's own heads.
struct HeadChunk {
  Range q;
  int group = 0;  ///< index into HeadLayout::groups
};

/// Which heads the members of a CP rank have, and in which chunks they travel and are computed.
///
/// Members have equal numbers of query heads. Where there are more members than KV heads, each KV
/// head is held by several (`replicas`). A member with two or more KV heads works in up to four
/// chunks of whole KV heads; one with a single KV head in up to four of at least four query heads,
/// which share it. So the next chunk is on its way while one is computed, and kernels still get
/// enough heads to fill a GPU. One member: one chunk.
class HeadLayout {
 public:
  /// Only for counts that check_heads accepts.
  HeadLayout(int heads_q, int heads_k, int ways);

  int ways() const { return ways_; }
  int replicas() const { return replicas_; }
  const std::vector<HeadChunk>& chunks() const { return chunks_; }
  const std::vector<Range>& groups() const { return groups_; }

  /// Numbers among all heads.
  Range q_heads(int member, const HeadChunk& chunk) const;
  Range kv_heads(int member, int group) const;

 private:
  int ways_;
  int replicas_;
  int q_per_member_;
  int kv_per_member_;
  std::vector<HeadChunk> chunks_;
  std::vector<Range> groups_;
};

/// Whether `ways` ranks can share the heads, or `unsupported` with the limit.
Support check_heads(int heads_q, int heads_k, int ways);

}  // namespace longca
