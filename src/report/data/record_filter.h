#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/record/record.h"

namespace longca {

/// The records that `-a AXIS=VALUES` arguments leave: those whose value on each of these axes is
/// among the values, and those that do not have the axis (a mask without blocks has no density;
/// cells on one device, to which those over ranks are compared, have no ranks). Names may be those
/// of kernels and masks that only the records know. Throws InputError for an unknown axis, and for
/// a value that no record has, naming those that there are.
std::vector<Record> filter_records(std::vector<Record> records,
                                   std::span<const std::string> arguments);

}  // namespace longca
