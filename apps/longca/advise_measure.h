#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "advise/open_cells.h"
#include "bench/record/record.h"

namespace longca {

/// What advise --measure did.
struct Measured {
  std::string file;  ///< of the records
  std::vector<Record> records;
  std::size_t left = 0;  ///< cells for which there was no time
  double seconds = 0;    ///< that it took
};

/// Runs cells as `bench` does, the first ones first, for about so many seconds: none is begun that
/// may end later, except the first. Records go to the file `out` or, if it is "", to one of this
/// time in results/. `read`: files of records that are not to be written. `plugins`: those whose
/// kernels the registry has. Throws as bench does.
Measured measure_cells(std::span<const advise::OpenCell> cells, double seconds, std::string out,
                       std::span<const std::string> read, std::span<const std::string> plugins);

/// {"file","seconds","cells":[{"key","status"}],"left","changes":[{"problem","pass","before",
/// "after"}]}: kernels, null where there was none.
nlohmann::json measured_json(const Measured& measured,
                             std::span<const advise::ChangedChoice> changes);
/// Says how much was measured, where it is, and what became of each first choice, on lines of at
/// most `width` columns.
void print_measured(std::ostream& out, const Measured& measured,
                    std::span<const advise::ChangedChoice> changes, int width);

}  // namespace longca
