#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace longca {

/// Document lengths of the user's own.
struct OwnLengths {
  std::filesystem::path path;         ///< absolute
  std::vector<std::int64_t> lengths;  ///< of at least one token each, in the file's order
  std::int64_t tokens = 0;            ///< their sum
};

/// A file of lengths has at most so many bytes.
inline constexpr std::size_t kMaxLengthsBytes = std::size_t{64} << 20;

/// Reads the lengths of a text (whole numbers separated by white space or commas) or of NumPy's
/// .npy (one dimension of int32, int64, uint32 or uint64). `name` is the file's in messages. Throws
/// InputError that names the line, or the element of a .npy, its value and the limit: none at all,
/// a length outside [1, kMaxTokens].
std::vector<std::int64_t> parse_lengths(std::string_view bytes, const std::string& name);

/// Reads a file of lengths into this process, once, and returns the name (see OwnFile) by which
/// sample_lengths then knows it. Throws as read_own_file and parse_lengths do.
std::string add_own_lengths(const std::filesystem::path& file);

/// Makes lengths known by a name of the caller's, for files that hold several sequences. Of equal
/// names the last counts.
void add_own_lengths(const std::string& name, OwnLengths lengths);

/// Throws InputError if all documents together have fewer tokens. `name` is theirs in messages.
void require_tokens(const OwnLengths& own, std::string_view name, std::int64_t tokens);

/// The documents that fill `tokens`: those of the file in its order, the last one cut. Throws as
/// require_tokens does.
std::vector<std::int64_t> first_documents(const OwnLengths& own, std::string_view name,
                                          std::int64_t tokens);

/// The lengths of that name, which stay as long as the process; nullptr if none were read.
const OwnLengths* find_own_lengths(const std::string& name);

}  // namespace longca
