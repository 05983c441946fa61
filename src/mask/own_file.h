#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace longca {

/// A file of the user's own that the cells of a run name: document lengths or a mask.
struct OwnFile {
  /// The file's name and a hash of its contents, "docs.txt-0123456789abcdef": what keys and records
  /// call it. Two files of different contents never share one.
  std::string name;
  std::filesystem::path path;  ///< absolute
  std::string bytes;
};

/// Whether the value of an axis means a file instead of a name: it has a '/' or a '.'.
bool means_file(std::string_view value);

/// Reads a file as read_input_file does, and names it.
OwnFile read_own_file(std::string_view what, const std::filesystem::path& path,
                      std::size_t max_bytes);

/// An OwnFile's name without the hash, for people; other texts as they are.
std::string_view without_hash(std::string_view name);

}  // namespace longca
