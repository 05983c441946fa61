#pragma once

#include <string>
#include <string_view>

namespace longca {

/// One line of text that cannot act on a terminal, a page or a reader, for everything that comes
/// from a file, a plug-in or the command line. Each character that acts instead of showing is
/// written out as C does: "\n", "\x1b" for a byte, "\u202e" for a character. These are the control
/// characters (C0, DEL, C1), those that change the direction of text or separate lines or are
/// invisible (Unicode's Cf in the blocks below U+3000, U+2028, U+2029, U+FEFF, tags), and bytes
/// that are not UTF-8. Everything else stays.
std::string printable(std::string_view text);

/// JSON as it is printed: what acts in its strings becomes \uXXXX, which means the same. `json` is
/// what a JSON library wrote, line ends between its values included.
std::string printable_json(std::string_view json);

/// Whether a text is a name for kernels and masks: letters, digits, '_', '.', '-', and neither "."
/// nor "..", so that it can be part of a file's name; at most kMaxNameBytes.
bool is_name(std::string_view text);
inline constexpr int kMaxNameBytes = 64;

/// Throws InputError unless is_name(text). `what` is the thing's kind: "kernel".
void check_name(std::string_view what, std::string_view text);

}  // namespace longca
