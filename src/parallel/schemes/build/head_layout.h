#pragma once

#include <vector>

#include "core/status.h"
#include "mask/mask_slice.h"

namespace longca {

/// Query heads that a rank computes in one call, numbered among the rank's own heads, and the group
/// of KV heads that they read.
struct HeadChunk {
  Range q;
  int group = 0;  ///< index into HeadLayout::groups
};

/// Which heads the members of a CP rank hold, and the chunks in which these are sent and computed.
///
/// Members hold equal numbers of query heads. With more members than KV heads, `replicas` members
/// hold each KV head. A member's heads form up to four chunks, of whole KV heads, or of at least
/// four query heads where it holds a single KV head: a chunk is sent while another is computed, and
/// each still fills a GPU. A single member has one chunk.
class HeadLayout {
 public:
  /// Only for counts that check_heads accepts.
  HeadLayout(int heads_q, int heads_k, int ways);

  int ways() const { return ways_; }
  int replicas() const { return replicas_; }
  const std::vector<HeadChunk>& chunks() const { return chunks_; }
  const std::vector<Range>& groups() const { return groups_; }

  /// The heads of a member's chunk or group, numbered among all heads.
  Range q_heads(int member, const HeadChunk& chunk) const;
  Range kv_heads(int member, int group) const;

 private:
  int ways_;
  int replicas_;
  int q_per_member_;
  int kv_per_member_;
  std::vector<HeadChunk> chunks_;
  std::vector<Range> groups_;  ///< KV heads, numbered among the rank's own
};

/// `unsupported`, with the limit, where `ways` ranks cannot share the heads.
Support check_heads(int heads_q, int heads_k, int ways);

}  // namespace longca
