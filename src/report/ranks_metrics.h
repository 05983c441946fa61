#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/view.h"

namespace longca {

/// Figures of cells over ranks that views derive from the record's metrics.

/// exposed_comm_ms / time_ms, in percent.
std::optional<double> exposed_percent(const Record* record);

/// "12", and never "-0".
std::string format_percent(double percent);

/// How what was sent compares with the scheme's formula.
enum class BytesCheck { unknown, equal, differs };
BytesCheck check_bytes(const Record* record);
/// "=", "≠" or "".
std::string_view mark_of(BytesCheck check);

/// Cells that sent other than the formula says, in the view's order.
std::vector<const Record*> cells_off_formula(const View& view);

/// The largest value of a row's passes, if any has it.
std::optional<double> largest_of(const ViewRow& row, const std::string& metric);
std::optional<double> largest_error(const ViewRow& row);

/// "shard contiguous: ulysses; zigzag: ring_p2p" and "transport mpi", those that schemes have one
/// of.
std::vector<std::string> scheme_settings(std::span<const Record> records);

}  // namespace longca
