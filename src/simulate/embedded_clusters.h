#pragma once

#include <span>
#include <string_view>

namespace longca::simulate {

/// A page of configs/clusters/.
struct EmbeddedCluster {
  std::string_view name;
  std::string_view toml;
};
std::span<const EmbeddedCluster> embedded_clusters();

}  // namespace longca::simulate
