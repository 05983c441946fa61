#pragma once

#include <string>

#include "bench/launch/launcher.h"

namespace longca {

/// The IPv4 address of this host on which it waits for the ranks' connections, and no other;
/// "" where all ranks are on this host and connect to a Unix socket. With a hostfile it is the one
/// from which this host reaches the others; without, the one that its name stands for. "0.0.0.0",
/// all of them, only where those differ between hosts or the name stands for the loopback alone.
std::string listening_host(const RankStart& start);

}  // namespace longca
