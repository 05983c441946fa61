#pragma once

#include <string>

#include "bench/launch/launcher.h"

namespace longca {

/// The IPv4 address on which this host listens for the ranks' connections; "" where all ranks are
/// on this host and connect to a Unix socket. With a hostfile it is the address from which this
/// host reaches the others; without, the one that its name resolves to. "0.0.0.0" (all addresses)
/// only if those differ between hosts or the name resolves to the loopback alone.
std::string listening_host(const RankStart& start);

}  // namespace longca
