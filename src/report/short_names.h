#pragma once

#include <span>

#include "bench/record/record.h"

namespace longca {

/// Takes the hashes off the names of the user's own files (mask/own_file.h), for people to read:
/// where the records have two files of one name, or something else is called so, they stay.
void shorten_own_names(std::span<Record> records);

}  // namespace longca
