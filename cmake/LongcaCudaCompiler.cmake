# The CUDA compiler: nvcc of a toolkit, or what scripts/setup has fetched from PyPI into build/deps/cuda.
include(CheckLanguage)

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

# Sets CMAKE_CUDA_COMPILER as check_language does: $CUDACXX, else nvcc on PATH, else PyPI's.
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
  if("$ENV{CUDACXX}" STREQUAL "" AND NOT LONGCA_NVCC AND EXISTS ${fetched}/bin/nvcc)
    set(ENV{CUDACXX} ${fetched}/bin/nvcc)
  endif()
  if(NOT "$ENV{CUDACXX}" STREQUAL "")
    get_filename_component(root $ENV{CUDACXX} DIRECTORY)
    longca_complete_pypi_toolkit(${root}/..)
  endif()
  check_language(CUDA)
endfunction()
