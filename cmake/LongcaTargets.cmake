# longca_library(NAME SOURCES … DEPENDS …), longca_test(NAME SOURCES … DEPENDS …): one place for
# warnings, sanitizers and include paths.

# A user's compiler may be newer than those that this is developed with, and warn of more.
set(LONGCA_WERROR "$ENV{LONGCA_WERROR}" CACHE BOOL "Take warnings as errors, as continuous integration does")
add_library(longca_options INTERFACE)
target_compile_options(longca_options INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wno-sign-conversion;-Wnon-virtual-dtor>
  $<$<AND:$<BOOL:${LONGCA_WERROR}>,$<COMPILE_LANGUAGE:CXX>>:-Werror>
  $<$<AND:$<BOOL:${LONGCA_WERROR}>,$<COMPILE_LANGUAGE:CUDA>>:-Werror=all-warnings>
  # Not in a batch (LongcaUnity.cmake), where a parameter shadows a name that is local to another source.
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<NOT:$<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>>>:-Wshadow>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra;--expt-relaxed-constexpr>)
target_include_directories(longca_options INTERFACE
  $<$<NOT:$<AND:$<BOOL:${LONGCA_WITH_CUDA}>,$<IN_LIST:longca_cuda,$<TARGET_PROPERTY:LINK_LIBRARIES>>>>:${LONGCA_HIDDEN_CUDA}>)
# What goes through a null pointer or past the end of an object ends under AddressSanitizer too; without these two
# checks sources compile in three quarters of the time.
set(longca_unneeded_checks -fno-sanitize=null,object-size)
if(LONGCA_SANITIZE)
  target_compile_options(longca_options INTERFACE
    -fsanitize=${LONGCA_SANITIZE} ${longca_unneeded_checks} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(longca_options INTERFACE -fsanitize=${LONGCA_SANITIZE})
endif()
# Libraries that read what others have written: the fuzz targets have them under sanitizers, and their branches and
# comparisons call the fuzzer's runtime (tests/fuzz/coverage.cpp). The others are as in a release, and as quick to build.
set(longca_fuzzed core mask cost simulate bench report)
set(longca_fuzz_sanitizers -fsanitize=address,undefined)
set(longca_fuzz_options ${longca_fuzz_sanitizers} ${longca_unneeded_checks} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1
  -fsanitize-coverage=trace-pc,trace-cmp -Wno-error=maybe-uninitialized)

# Sets RESULT to whether a header includes <…> of `pattern`, itself or through other headers of src/.
# What the preprocessor would skip counts too.
function(longca_header_includes result header pattern)
  set(property "longca ${header} includes ${pattern}")
  get_property(found GLOBAL PROPERTY ${property})
  if("${found}" STREQUAL "")
    set(found FALSE)
    set_property(GLOBAL PROPERTY ${property} FALSE)  # ends circles
    file(STRINGS ${header} lines REGEX "^ *# *include *[<\"]")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^ *# *include *[<\"]([^>\"]*).*" "\\1" name "${line}")
      if(EXISTS ${PROJECT_SOURCE_DIR}/src/${name})
        longca_header_includes(found ${PROJECT_SOURCE_DIR}/src/${name} "${pattern}")
      elseif(name MATCHES "${pattern}")
        set(found TRUE)
      endif()
      if(found)
        break()
      endif()
    endforeach()
    set_property(GLOBAL PROPERTY ${property} ${found})
  endif()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

set(LONGCA_CUDA_HEADERS "^(cuda|cublas|nvml|nvtx|cub/|cooperative_groups|(driver|vector)_types\\.h|mma\\.h)")

# Sets RESULT to those of `headers` that need no library which this build, or a target that depends on
# `depends`, lacks. The headers' own text decides, not the folder that they are in.
function(longca_compilable_headers result depends)
  set(absent "^attention/api/interface_hash\\.h")  # written by the build: sources prove what includes it
  if(NOT LONGCA_WITH_CUDA)
    list(APPEND absent "${LONGCA_CUDA_HEADERS}")
  endif()
  if(NOT LONGCA_WITH_CUBLAS)
    list(APPEND absent "^cublas")
  endif()
  if(NOT LONGCA_WITH_CUDNN)
    list(APPEND absent "^cudnn")
  endif()
  if(NOT LONGCA_WITH_FLASHINFER)
    list(APPEND absent "^(flashinfer|cutlass|cute)/")
  endif()
  if(NOT "MPI::MPI_CXX" IN_LIST depends)
    list(APPEND absent "^mpi\\.h")
  endif()
  list(JOIN absent "|" absent)
  set(compilable)
  foreach(header IN LISTS ARGN)
    longca_header_includes(lacks ${header} "${absent}")
    if(NOT lacks)
      list(APPEND compilable ${header})
    endif()
  endforeach()
  if(NOT LONGCA_WITH_CUDA)  # a header that comes to include the toolkit's is no longer compiled
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${ARGN})
  endif()
  set(${result} ${compilable} PARENT_SCOPE)
endfunction()

# Which headers the target longca_headers compiles alone. A source that begins with its own header proves that header,
# where it is compiled by itself: `unproven` are the others. Compiling all takes five minutes of CPU time, so that the
# presets that build in batches leave it to `./test --lint`, which compiles those that a change may have broken.
set(LONGCA_HEADERS unproven CACHE STRING "Headers that are compiled alone: unproven, all or none")
set_property(CACHE LONGCA_HEADERS PROPERTY STRINGS unproven all none)

# Sets RESULT to those of `headers` that are compiled alone.
function(longca_headers_to_compile result base)
  set(chosen ${ARGN})
  if(LONGCA_HEADERS STREQUAL "none")
    set(chosen)
  elseif(LONGCA_HEADERS STREQUAL "unproven")
    foreach(header IN LISTS ARGN)
      file(RELATIVE_PATH name ${base} ${header})
      foreach(extension cpp cu)
        string(REGEX REPLACE "h$" ${extension} source ${header})
        if(EXISTS ${source})
          file(STRINGS ${source} first REGEX "^#include" LIMIT_COUNT 1)
          if(first STREQUAL "#include \"${name}\"")
            list(REMOVE_ITEM chosen ${header})
          endif()
        endif()
      endforeach()
    endforeach()
  endif()
  set(${result} ${chosen} PARENT_SCOPE)
endfunction()

# Creates `target` of `type` (STATIC, OBJECT), still without sources, for what library `name` consists of.
function(longca_add_library target type name headers depends)
  add_library(${target} ${type})
  longca_headers_to_compile(alone ${PROJECT_SOURCE_DIR}/src ${headers})
  target_sources(${target} PUBLIC
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${headers}
    FILE_SET alone TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}/src FILES ${alone})
  # Position-independent: the same objects make the program and the library that Python loads.
  set_target_properties(${target} PROPERTIES
    VERIFY_INTERFACE_HEADER_SETS ON INTERFACE_HEADER_SETS_TO_VERIFY alone POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>)
  target_link_libraries(${target} PUBLIC ${depends} fmt::fmt PRIVATE longca_options)
  if(LONGCA_FUZZ AND name IN_LIST longca_fuzzed)
    target_compile_options(${target} PRIVATE ${longca_fuzz_options})
  endif()
endfunction()

# A library of one folder under src/. Headers are included by their path from src/ ("mask/mask.h"),
# and each one compiles alone (longca_headers_to_compile). CUDA_SOURCES are those that read the toolkit's headers or
# whether there is CUDA (LONGCA_WITH_…): objects longca_NAME_cuda, to which subfolders add theirs. All SOURCES compile
# alike with and without CUDA, so that of a build without it one with CUDA compiles only the former anew.
function(longca_library name)
  cmake_parse_arguments(ARG "CUDA" "" "SOURCES;CUDA_SOURCES;DEPENDS" ${ARGN})
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
  longca_compilable_headers(headers "${ARG_DEPENDS}" ${headers})
  set(cuda_headers)
  foreach(header IN LISTS headers)
    longca_header_includes(reads_cuda ${header} "${LONGCA_CUDA_HEADERS}|^(cudnn|nccl)")
    if(reads_cuda)
      list(APPEND cuda_headers ${header})
    endif()
  endforeach()
  list(REMOVE_ITEM headers ${cuda_headers})
  longca_add_library(longca_${name} STATIC ${name} "${headers}" "${ARG_DEPENDS}")
  target_sources(longca_${name} PRIVATE ${ARG_SOURCES})
  if(ARG_CUDA OR ARG_CUDA_SOURCES)
    longca_add_library(longca_${name}_cuda OBJECT ${name} "${cuda_headers}" "${ARG_DEPENDS};longca_cuda")
    target_sources(longca_${name}_cuda PRIVATE ${ARG_CUDA_SOURCES})
    target_sources(longca_${name} PRIVATE $<TARGET_OBJECTS:longca_${name}_cuda>)
  elseif(cuda_headers)
    message(FATAL_ERROR "${cuda_headers} read CUDA's headers, of which longca_${name} has no sources")
  endif()
endfunction()

# A plug-in, compiled as users compile theirs: against the headers that the build writes, and linked to
# nothing of ours.
function(longca_plugin name)
  add_library(${name} MODULE ${ARGN})
  set_target_properties(${name} PROPERTIES PREFIX "")
  target_include_directories(${name} PRIVATE ${PROJECT_BINARY_DIR}/include)
  add_dependencies(${name} longca_plugin_headers)
  target_link_libraries(${name} PRIVATE longca_options)
endfunction()

# What `./test --fast` builds; .ci/run runs it without CUDA and under each sanitizer.
add_custom_target(longca_fast)

# A GoogleTest (and RapidCheck) binary; every TEST becomes a ctest of its own. What `--fast` selects has a label that
# begins with "fast": FAST tests in plain builds; under a sanitizer those that name it after SANITIZED (address, thread).
# All that such a test links is compiled for it, within .ci/run: core, mask and cost take minutes, the rest a quarter of an
# hour.
# LONG ones begin first, so that none is left alone at the end while cores are idle.
# The sanitizers leave signals and refused allocations to the program, whose answers to them are under test.
set(sanitizer_options "handle_segv=0:handle_abort=0:allocator_may_return_null=1")
if(LONGCA_SANITIZE STREQUAL "thread")
  set(sanitizer_options "TSAN_OPTIONS=${sanitizer_options}")
else()
  set(sanitizer_options "ASAN_OPTIONS=${sanitizer_options}")
endif()
function(longca_test name)
  cmake_parse_arguments(ARG "FAST;LONG" "TIMEOUT" "SOURCES;DEPENDS;SANITIZED" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set(cost 0)
  if(ARG_LONG)
    set(cost 10)
  endif()
  set(label ${name})
  set(is_fast ${ARG_FAST})
  if(LONGCA_SANITIZE)
    string(REGEX MATCH "^[a-z]+" sanitizer ${LONGCA_SANITIZE})
    set(is_fast FALSE)
    if(sanitizer IN_LIST ARG_SANITIZED)
      set(is_fast TRUE)
    endif()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  if(is_fast)
    set(label fast.${name})
    add_dependencies(longca_fast ${name})
  endif()
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} longca_options rapidcheck GTest::gtest_main GTest::gmock)
  target_precompile_headers(${name} REUSE_FROM longca_test_headers)
  include(GoogleTest)
  gtest_discover_tests(${name} NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 PROPERTIES
    TIMEOUT ${ARG_TIMEOUT} LABELS ${label} COST ${cost}
    ENVIRONMENT "${sanitizer_options}")
endfunction()
