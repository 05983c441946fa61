#pragma once

#include <string>
#include <vector>

namespace longca {

/// The life of a worker process: loads the plug-ins, then runs the cells that arrive on `socket`
/// until the other end closes. A cell that ends this process costs the run that cell alone.
void run_worker(int socket, const std::vector<std::string>& plugins);

}  // namespace longca
