#pragma once

#include <span>
#include <string>
#include <vector>

#include "bench/record/record.h"

namespace longca {

/// A figure that a folder holds as STEM.png, STEM.svg and STEM.pdf.
struct IndexedPlot {
  std::string stem;
  std::string title;
  std::string setting;  ///< "heads 64:8", or ""
  std::string hint;
};

/// The page that lists the figures of a folder: a picture of each, with title and links.
std::string plots_index(std::span<const IndexedPlot> plots, std::span<const Record> records);

}  // namespace longca
