// Masks of longca.h as bytes: 64-bit words in this order: "LCAMASK1", tokens_q, tokens_k, then
// counts and entries of slices (5 words each), documents, and of masks with block lists heads,
// query bounds, key bounds, offsets, indices. A mask's slices are sorted, so that equal masks have
// equal bytes.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "answer.h"
#include "handles.h"
#include "longca.h"
#include "mask/mask.h"
#include "problems.h"

namespace longca::capi {
namespace {

using Words = std::vector<std::int64_t>;

constexpr std::int64_t kMagic = 0x314b53414d41434c;  // "LCAMASK1"
constexpr std::size_t kWord = sizeof(std::int64_t);

template <typename T>
void append(Words& words, const std::vector<T>& values) {
  words.push_back(std::ssize(values));
  words.insert(words.end(), values.begin(), values.end());
}

Words words_of(const longca_mask& handle) {
  const Mask& mask = handle.mask;
  Words words{kMagic, mask.q_tokens(), mask.k_tokens(), std::ssize(mask.slices())};
  for (const MaskSlice& s : mask.slices()) {
    words.insert(words.end(),
                 {s.q_begin, s.q_end, s.k_begin, s.k_end, static_cast<std::int64_t>(s.type)});
  }
  append(words, handle.documents);
  if (const BlockLists* blocks = mask.blocks()) {
    words.push_back(blocks->heads);
    append(words, blocks->q_bounds);
    append(words, blocks->k_bounds);
    append(words, blocks->offsets);
    append(words, blocks->indices);
  }
  return words;
}

/// Reads what words_of has written; throws InputError where the bytes are other ones.
class Reader {
 public:
  Reader(const void* bytes, std::size_t size) : words_(size / kWord) {
    if (size % kWord != 0) throw_input_error("a mask of {} bytes is no multiple of 8", size);
    if (size > 0) std::memcpy(words_.data(), bytes, size);
  }
  bool at_end() const { return at_ == words_.size(); }
  std::int64_t word() {
    if (at_end()) throw_input_error("the bytes of a mask end after {}", at_ * kWord);
    return words_[at_++];
  }
  std::int64_t count(std::size_t words_each) {
    const std::int64_t n = word();
    if (n < 0 || static_cast<std::size_t>(n) > (words_.size() - at_) / words_each) {
      throw_input_error("a list of a mask's bytes has {} entries, and the rest holds {}", n,
                        (words_.size() - at_) / words_each);
    }
    return n;
  }
  template <typename T>
  std::vector<T> list() {
    std::vector<T> values;
    for (std::int64_t n = count(1); n > 0; --n) {
      const std::int64_t value = word();
      if (!std::in_range<T>(value)) {
        using Limits = std::numeric_limits<T>;
        throw_input_error("a list of a mask's bytes holds {}: at least {}, at most {}", value,
                          Limits::min(), Limits::max());
      }
      values.push_back(static_cast<T>(value));
    }
    return values;
  }
  std::vector<MaskSlice> slices() {
    std::vector<MaskSlice> slices;
    for (std::int64_t n = count(5); n > 0; --n) {
      MaskSlice s{word(), word(), word(), word()};
      const std::int64_t type = word();
      if (type < 0 || type > LONGCA_SLICE_BI_CAUSAL) {
        throw_input_error("a slice has type {}: at least 0, at most {}", type,
                          static_cast<int>(LONGCA_SLICE_BI_CAUSAL));
      }
      s.type = static_cast<MaskSliceType>(type);
      slices.push_back(s);
    }
    return slices;
  }

 private:
  Words words_;
  std::size_t at_ = 0;
};

/// A mask that was drawn without documents has none.
void check_documents(const std::vector<std::int64_t>& lengths, std::int64_t tokens) {
  std::int64_t left = tokens;
  for (const std::int64_t length : lengths) {
    if (length < 0 || length > left) {
      throw_input_error("a document of a mask's bytes has {} tokens: at least 0, at most {}",
                        length, left);
    }
    left -= length;
  }
  if (!lengths.empty() && left != 0) {
    throw_input_error("the documents of a mask's bytes have {} tokens, the mask has {}",
                      tokens - left, tokens);
  }
}

std::unique_ptr<longca_mask> read_mask(Reader reader) {
  if (reader.at_end() || reader.word() != kMagic) {
    throw_input_error("these bytes are no mask of this version of longca");
  }
  const std::int64_t tokens_q = reader.word();
  const std::int64_t tokens_k = reader.word();
  std::vector<MaskSlice> slices = reader.slices();
  auto documents = reader.list<std::int64_t>();
  check_documents(documents, tokens_q);
  if (reader.at_end()) {
    return make_mask(Mask::from_slices(tokens_q, tokens_k, std::move(slices)),
                     std::move(documents));
  }
  BlockLists blocks;
  const std::int64_t heads = reader.word();
  check_count(heads, "heads");
  blocks.heads = static_cast<int>(heads);
  blocks.q_bounds = reader.list<std::int64_t>();
  blocks.k_bounds = reader.list<std::int64_t>();
  blocks.offsets = reader.list<std::int64_t>();
  blocks.indices = reader.list<std::int32_t>();
  if (!reader.at_end()) throw_input_error("the bytes of a mask go on behind its block lists");
  return make_mask(Mask::from_blocks(tokens_q, tokens_k, std::move(slices), std::move(blocks)),
                   std::move(documents));
}

}  // namespace
}  // namespace longca::capi

extern "C" {

using namespace longca;
using namespace longca::capi;

longca_status longca_mask_write(const longca_mask* mask, void* bytes, size_t capacity,
                                size_t* size) {
  return answer([&] {
    const Words words = words_of(required(mask, "mask"));
    required(size, "size") = words.size() * kWord;
    if (bytes == nullptr) return;
    if (capacity < *size) throw_input_error("the mask has {} bytes, not {}", *size, capacity);
    std::memcpy(bytes, words.data(), *size);
  });
}

longca_status longca_mask_read(const void* bytes, size_t size, longca_mask** mask) {
  return answer([&] {
    if (bytes == nullptr) throw_input_error("bytes is NULL");
    give(mask, "mask", [&] { return read_mask(Reader(bytes, size)); });
  });
}

}  // extern "C"
