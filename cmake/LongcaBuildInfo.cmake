# longca_build_info(TARGET): compiles what the program knows about its own build into TARGET.
#
# The commit changes more often than anything else, so it lives in a header of its own that only
# build_info.cpp includes, and that is rewritten, at build time, only if the commit changed.
function(longca_build_info target)
  set(directory ${PROJECT_BINARY_DIR}/build_info)
  set(commit_header ${directory}/commit.h)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
  string(STRIP "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}}" compile_flags)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/build_info.cpp.in ${directory}/build_info.cpp @ONLY)
  add_custom_target(longca_commit
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DOUTPUT=${commit_header}
            -P ${PROJECT_SOURCE_DIR}/cmake/WriteCommit.cmake
    BYPRODUCTS ${commit_header}
    COMMENT "" VERBATIM)
  target_sources(${target} PRIVATE ${directory}/build_info.cpp)
  target_include_directories(${target} PRIVATE ${directory})
  add_dependencies(${target} longca_commit)
endfunction()
