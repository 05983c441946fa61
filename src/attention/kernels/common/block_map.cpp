#include "attention/kernels/common/block_map.h"

#include <utility>
#include <vector>

#include "core/error.h"

namespace longca {
namespace {

Buffer uploaded(const void* data, std::int64_t bytes) {
  Buffer buffer(Device::get(DeviceKind::cuda).memory(), bytes);
  if (bytes > 0) Device::get(DeviceKind::cuda).copy(buffer.data(), data, bytes);
  return buffer;
}

Buffer uploaded_bounds(const std::vector<std::int64_t>& bounds) {
  const std::vector<std::int32_t> narrow(bounds.begin(), bounds.end());  // kMaxTokens is below 2^31
  return uploaded(narrow.data(), std::ssize(narrow) * 4);
}

const BlockLists& lists_of(const Mask& mask) {
  LONGCA_CHECK(mask.blocks() != nullptr, "a mask of {} × {} tokens without blocks", mask.q_tokens(),
               mask.k_tokens());
  return *mask.blocks();
}

}  // namespace

BlockMap::BlockMap(const Mask& mask, Buffer words)
    : words_(std::move(words)),
      q_bounds_(uploaded_bounds(lists_of(mask).q_bounds)),
      k_bounds_(uploaded_bounds(lists_of(mask).k_bounds)),
      kept_(std::ssize(lists_of(mask).indices)) {
  const BlockLists& lists = lists_of(mask);
  bits_ = {.words = words_.as<std::uint32_t>(),
           .heads = lists.heads,
           .rows = static_cast<std::int32_t>(lists.q_blocks()),
           .columns = static_cast<std::int32_t>(lists.k_blocks()),
           .row_words = static_cast<std::int32_t>(words_per_row(lists.k_blocks()))};
  LONGCA_CHECK(words_.bytes() == bits_.all_rows() * bits_.row_words * 4,
               "{} bytes of bits for {} rows of {} words", words_.bytes(), bits_.all_rows(),
               bits_.row_words);
}

BlockBits BlockMap::bits() const {
  return bits_;
}

const BlockMap& BlockMap::of(const Mask& mask) {
  return mask.derived<BlockMap>([&] {
    const std::vector<std::uint32_t> words = block_bits(lists_of(mask));
    return std::shared_ptr<const BlockMap>(
        new BlockMap(mask, uploaded(words.data(), std::ssize(words) * 4)));
  });
}

const BlockMap& BlockMap::adopt(const Mask& mask, Buffer words) {
  return mask.derived<BlockMap>(
      [&] { return std::shared_ptr<const BlockMap>(new BlockMap(mask, std::move(words))); });
}

}  // namespace longca
