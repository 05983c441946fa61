# The CUDA compiler: nvcc of a toolkit, or what scripts/setup has fetched from PyPI into build/deps/cuda.
include(CheckLanguage)

set(LONGCA_NVCC_LEAST 12.4)

# The packages of PyPI (nvidia/cu13 below `root`) are a toolkit whose libraries lie in lib, where nvcc and CMake look in
# lib64, and lack the names without a version that linkers look for: wheels hold no links.
function(longca_complete_pypi_toolkit root)
  file(GLOB runtime ${root}/lib/libcudart.so.*)
  if(NOT runtime OR EXISTS ${root}/lib64)
    return()
  endif()
  get_filename_component(name ${runtime} NAME)
  file(CREATE_LINK ${name} ${root}/lib/libcudart.so SYMBOLIC)
  file(CREATE_LINK lib ${root}/lib64 SYMBOLIC)
endfunction()

# The release of an nvcc, "12.8"; empty if it does not say.
function(longca_nvcc_version nvcc version)
  execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE said ERROR_QUIET)
  string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" found "${said}")
  set(${version} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

# Sets CMAKE_CUDA_COMPILER as check_language does: $CUDACXX, else nvcc on PATH, else PyPI's. An older one than LONGCA_NVCC_LEAST
# is as good as none, unless $CUDACXX names it.
function(longca_find_cuda_compiler)
  # One may have been installed since the last time.
  if("${CMAKE_CUDA_COMPILER}" MATCHES "NOTFOUND$")
    unset(CMAKE_CUDA_COMPILER CACHE)
  endif()
  if(DEFINED CMAKE_CUDA_COMPILER)
    return()
  endif()
  set(fetched ${PROJECT_SOURCE_DIR}/build/deps/cuda/nvidia/cu13)
  find_program(LONGCA_NVCC nvcc PATHS ENV PATH NO_DEFAULT_PATH NO_CACHE)
  if(LONGCA_NVCC AND "$ENV{CUDACXX}" STREQUAL "")
    longca_nvcc_version(${LONGCA_NVCC} version)
    if(version AND version VERSION_LESS LONGCA_NVCC_LEAST)
      message(STATUS "${LONGCA_NVCC} is of CUDA ${version}, and GPU kernels need ${LONGCA_NVCC_LEAST} or later: not used")
      unset(LONGCA_NVCC)
      if(NOT EXISTS ${fetched}/bin/nvcc)
        set(CMAKE_CUDA_COMPILER CMAKE_CUDA_COMPILER-NOTFOUND CACHE FILEPATH "" FORCE)
        return()
      endif()
    endif()
  endif()
  if("$ENV{CUDACXX}" STREQUAL "" AND NOT LONGCA_NVCC AND EXISTS ${fetched}/bin/nvcc)
    set(ENV{CUDACXX} ${fetched}/bin/nvcc)
  endif()
  if(NOT "$ENV{CUDACXX}" STREQUAL "")
    get_filename_component(root $ENV{CUDACXX} DIRECTORY)
    longca_complete_pypi_toolkit(${root}/..)
  endif()
  check_language(CUDA)
endfunction()
