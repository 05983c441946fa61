#pragma once

#include <map>
#include <span>
#include <string>

#include "bench/record/record.h"
#include "mask/own_mask.h"

namespace longca {

/// The user's own masks that records name, by these names and by those of views
/// (shorten_own_names). A mask that this process has not read is read from where the run read it
/// (`masks` of the record's env), if the file is still there with the same contents; the others are
/// absent.
std::map<std::string, const OwnMask*> own_masks_of(std::span<const Record> records);

}  // namespace longca
