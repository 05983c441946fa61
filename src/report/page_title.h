#pragma once

#include <span>
#include <string>

#include "bench/record/record.h"

namespace longca {

/// What a page of the records is about: "Attention kernels on NVIDIA H200", "Context parallelism
/// over 2 and 4 ranks on NVIDIA H200", "Context parallelism over 4 ranks, and attention kernels, on
/// …"; and what of it was simulated.
std::string page_heading(std::span<const Record> records);

/// The machines that the cells ran on, "NVIDIA H200 and AMD EPYC 9R14, 2 cores"; their number if
/// there are more than three, "" if none is known. Simulated cells ran on none.
std::string machines_text(std::span<const Record> records);

/// "simulated on h100x8_ib400", "in part simulated on 5 platforms"; "" where no cell was.
std::string simulated_text(std::span<const Record> records);

}  // namespace longca
