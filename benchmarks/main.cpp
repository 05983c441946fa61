#include <benchmark/benchmark.h>

#include "register_all.h"

int main(int argc, char** argv) {
  longca::register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
