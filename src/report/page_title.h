#pragma once

#include <span>
#include <string>

#include "bench/record/record.h"

namespace longca {

/// What a page of the records is about: "Attention kernels on NVIDIA H200", "Context parallelism
/// over 2 and 4 ranks on NVIDIA H200", "Context parallelism over 4 ranks, and attention kernels, on
/// …".
std::string page_heading(std::span<const Record> records);

}  // namespace longca
