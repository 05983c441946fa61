#pragma once

namespace longca {

/// Registers the benchmarks of a program whose main is main.cpp.
void register_all();

}  // namespace longca
