# Every library that the build needs, from the system's packages (scripts/packages.txt lists them).
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(hwy REQUIRED)

if(LONGCA_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
endif()
if(LONGCA_BENCHMARKS)
  find_package(benchmark QUIET)  # without it everything else is built
endif()
