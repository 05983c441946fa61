# Every library that the build needs, from the system's packages (scripts/packages.txt lists them).
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(hwy REQUIRED)
# Names of the shared libraries that not every system has: a package or a wheel brings them along.
set(LONGCA_BUNDLED "^lib(fmt|hwy|tomlplusplus)[.]so")
if(LONGCA_PROGRAM)
  find_package(CLI11 REQUIRED)
  find_package(ZLIB REQUIRED)
endif()

if(LONGCA_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
endif()
if(LONGCA_BENCHMARKS)
  find_package(benchmark QUIET)  # without it everything else is built
endif()

# CUDA, if there is a compiler for it: kernels, device memory and clocks of GPUs. A GPU itself is
# looked for at run time, so that one build serves machines with and without one.
# Sets RESULT to LONGCA_CUDA_ARCHITECTURES. sm_90a code runs on Hopper alone, and other GPUs compile what is generic when
# it is loaded.
function(longca_cuda_architectures result)
  set(architectures ${LONGCA_CUDA_ARCHITECTURES})
  if(architectures STREQUAL "all")
    set(architectures 80-virtual 90a-real)
  elseif(NOT architectures)
    execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
      OUTPUT_VARIABLE found RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
    string(REPLACE "\n" ";" found "${found}")
    set(others ${found})
    list(FILTER others EXCLUDE REGEX "^9\\.0$")
    if(NOT failed EQUAL 0 OR NOT found)
      set(architectures 80-virtual 90a-real)
    elseif(NOT others)
      set(architectures 90a-real)
    else()
      set(architectures 80-virtual 90a-real)
      if(NOT "9.0" IN_LIST found)
        set(architectures 80-virtual)
      endif()
    endif()
  endif()
  set(${result} ${architectures} PARENT_SCOPE)
endfunction()

option(LONGCA_CUDA "Build for NVIDIA GPUs where a CUDA compiler is found" ON)
set(LONGCA_INSTANTIATIONS "$ENV{LONGCA_INSTANTIATIONS}" CACHE STRING
  "What our own GPU kernels are built for: few (bfloat16, 128 dimensions), default (slice also float16, 64, and in bfloat16 96, 192:128 and 256) or all")
set(LONGCA_CUDA_ARCHITECTURES "$ENV{LONGCA_CUDA_ARCHITECTURES}" CACHE STRING
  "GPU architectures of our own kernels, or all that there is code for; empty: those of this machine's GPUs, else all")
set(LONGCA_WITH_CUDA OFF)
if(LONGCA_CUDA)
  include(LongcaCudaCompiler)
  longca_find_cuda_compiler()
  if(CMAKE_CUDA_COMPILER)
    longca_cuda_architectures(CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    enable_language(CUDA)
    # CMake 3.25.1 does not know that nvcc has C++20.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
    endif()
    set(CMAKE_CUDA_STANDARD 20)
    set(CMAKE_CUDA_EXTENSIONS OFF)
    find_package(CUDAToolkit ${LONGCA_NVCC_LEAST} REQUIRED)
    set(LONGCA_WITH_CUDA ON)
    set(LONGCA_CUDA_RUNTIME CUDA::cudart_static)
    # The toolkit's libraries are loaded when a kernel first needs them; this is where they are.
    list(APPEND CMAKE_BUILD_RPATH ${CUDAToolkit_LIBRARY_DIR})
    # PyPI's cuDNN and NCCL lie beside its toolkit.
    if(CUDAToolkit_BIN_DIR MATCHES "^(.*/nvidia)/cu[0-9]+/bin$")
      set(LONGCA_PYPI_CUDA ${CMAKE_MATCH_1})
      list(APPEND CMAKE_BUILD_RPATH ${LONGCA_PYPI_CUDA}/cudnn/lib ${LONGCA_PYPI_CUDA}/nccl/lib)
    endif()
  endif()
endif()

# What sources link that read the toolkit's headers, or whether there is CUDA. All others compile alike with and without.
add_library(longca_cuda INTERFACE)
if(LONGCA_WITH_CUDA)
  target_compile_definitions(longca_cuda INTERFACE LONGCA_WITH_CUDA)
  target_link_libraries(longca_cuda INTERFACE ${LONGCA_CUDA_RUNTIME})
endif()

# Those others, and all where there is no CUDA, reach no header of the toolkit, wherever the machine has one: otherwise
# a host file that includes one compiles wherever CI runs and fails for everybody without CUDA.
set(LONGCA_HIDDEN_CUDA)
if(LONGCA_UNITY OR NOT LONGCA_WITH_CUDA)
  set(LONGCA_HIDDEN_CUDA ${PROJECT_BINARY_DIR}/hidden_cuda)
  foreach(header builtin_types cooperative_groups cublasLt cublas_v2 cuda cuda_bf16 cuda_fp16 cuda_fp8 cuda_pipeline
      cuda_profiler_api cuda_runtime cuda_runtime_api cudaTypedefs cudnn cudnn_graph driver_types library_types mma nccl
      nvml nvrtc vector_functions vector_types)
    file(CONFIGURE OUTPUT ${LONGCA_HIDDEN_CUDA}/${header}.h CONTENT
      "#error \"A source that is compiled without CUDA includes <${header}.h>: only those of longca_…_cuda may.\"\n")
  endforeach()
endif()

# What follows serves kernels of other projects and communication: the program's, not the C library's of a wheel.
set(LONGCA_WITH_OTHERS OFF)
if(LONGCA_WITH_CUDA AND LONGCA_PROGRAM)
  set(LONGCA_WITH_OTHERS ON)
endif()

# cuBLAS by its headers: the library is loaded at run time.
set(LONGCA_WITH_CUBLAS OFF)
if(LONGCA_WITH_OTHERS)
  find_path(LONGCA_CUBLAS_INCLUDE cublas_v2.h HINTS ${CUDAToolkit_INCLUDE_DIRS} REQUIRED DOC "Folder of cublas_v2.h")
  set(LONGCA_WITH_CUBLAS ON)
endif()

# cuDNN by its C++ frontend: headers only, the library is loaded at run time. The frontend's are in
# a Python package (scripts/python_packages.txt), cuDNN's own beside the CUDA toolkit's or the system's.
set(LONGCA_WITH_CUDNN OFF)
if(LONGCA_WITH_OTHERS)
  find_path(LONGCA_CUDNN_INCLUDE cudnn_graph.h
    HINTS ${CUDAToolkit_INCLUDE_DIRS} $ENV{LONGCA_CUDNN}/../include ${LONGCA_PYPI_CUDA}/cudnn/include
    DOC "Folder of cudnn.h")
  find_path(LONGCA_CUDNN_FRONTEND_INCLUDE cudnn_frontend.h
    HINTS ${PROJECT_SOURCE_DIR}/build/deps/python/include DOC "Folder of cudnn_frontend.h")
  if(LONGCA_CUDNN_INCLUDE AND LONGCA_CUDNN_FRONTEND_INCLUDE)
    set(LONGCA_WITH_CUDNN ON)
    add_library(longca_cudnn_frontend INTERFACE)
    target_include_directories(longca_cudnn_frontend SYSTEM INTERFACE
      ${LONGCA_CUDNN_FRONTEND_INCLUDE} ${LONGCA_CUDNN_INCLUDE})
    target_compile_definitions(longca_cudnn_frontend INTERFACE
      NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING CUDNN_FRONTEND_SKIP_JSON_LIB)
  endif()
endif()

# FlashInfer by its headers, which bring CUTLASS's and a C++ standard library for devices of their own:
# all are in its Python package (scripts/python_packages.txt).
set(LONGCA_WITH_FLASHINFER OFF)
if(LONGCA_WITH_OTHERS)
  find_path(LONGCA_FLASHINFER_DATA include/flashinfer/attention/hopper/prefill_sm90.cuh
    HINTS ${PROJECT_SOURCE_DIR}/build/deps/python/flashinfer/data
    DOC "Folder flashinfer/data of the Python package flashinfer-python")
  if(LONGCA_FLASHINFER_DATA)
    set(LONGCA_WITH_FLASHINFER ON)
    set(LONGCA_FLASHINFER_INCLUDES)
    foreach(folder cccl/libcudacxx/include include cutlass/include cutlass/tools/util/include)
      list(APPEND LONGCA_FLASHINFER_INCLUDES ${LONGCA_FLASHINFER_DATA}/${folder})
    endforeach()
    file(GLOB dist_info ${LONGCA_FLASHINFER_DATA}/../../flashinfer_python-*.dist-info)
    string(REGEX REPLACE ".*flashinfer_python-(.*)\\.dist-info$" "flashinfer-python \\1"
      LONGCA_FLASHINFER_VERSION "${dist_info}")
  endif()
endif()

# MPI, for context parallelism over processes: linked by what mpirun starts, never by the program
# itself.
option(LONGCA_MPI "Build context parallelism over MPI where it is found" ON)
set(LONGCA_WITH_MPI OFF)
if(LONGCA_MPI)
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(LONGCA_WITH_MPI ON)
  endif()
endif()

# SimGrid, beside which a test runs our simulation. Its interface differs from release to release: this is Debian 12's.
set(LONGCA_WITH_SIMGRID OFF)
if(LONGCA_TESTS AND NOT LONGCA_SANITIZE)
  find_path(LONGCA_SIMGRID_INCLUDE simgrid/version.h DOC "Folder of simgrid/version.h")
  find_library(LONGCA_SIMGRID_LIBRARY simgrid DOC "SimGrid's library")
  if(LONGCA_SIMGRID_INCLUDE AND LONGCA_SIMGRID_LIBRARY)
    file(STRINGS ${LONGCA_SIMGRID_INCLUDE}/simgrid/version.h version REGEX "define SIMGRID_VERSION_STRING ")
    if(version MATCHES "SimGrid version 3\\.32")
      set(LONGCA_WITH_SIMGRID ON)
      add_library(longca_simgrid INTERFACE)
      target_include_directories(longca_simgrid SYSTEM INTERFACE ${LONGCA_SIMGRID_INCLUDE})
      target_link_libraries(longca_simgrid INTERFACE ${LONGCA_SIMGRID_LIBRARY})
    endif()
  endif()
endif()
