// Document lengths of the user's own, as text or .npy.

#include "mask/own_lengths.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>

#include "fuzz.h"
#include "mask/range.h"

namespace longca::fuzz {

void fuzz(std::string_view text) {
  OwnLengths own;
  if (!accepts([&] { own.lengths = parse_lengths(text, "d.txt"); })) return;
  require(!own.lengths.empty(), "no length is read as lengths");
  for (const std::int64_t length : own.lengths) {
    require(length >= 1 && length <= kMaxTokens, fmt::format("a length of {}", length));
  }
  own.tokens = std::reduce(own.lengths.begin(), own.lengths.end(), std::int64_t{0});
  const auto again = parse_lengths(fmt::format("{}\n", fmt::join(own.lengths, " ")), "again");
  require(again == own.lengths, "other lengths when they are read again");
  const std::int64_t tokens = (own.tokens + 1) / 2;
  const auto first = first_documents(own, "d.txt", tokens);
  require(std::reduce(first.begin(), first.end(), std::int64_t{0}) == tokens,
          "documents that do not fill the sequence");
}

}  // namespace longca::fuzz
