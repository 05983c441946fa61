# cmake -DSOURCE=checkout -DOUTPUT=header -P WriteCommit.cmake: writes the commit of the checkout, and
# whether what the program is built from differs from it. Touches the header only if that changed.
set(commit "unknown")
set(dirty false)
# A checkout of another user (a container's, a chroot's) is read all the same.
set(git git -c safe.directory=* -C ${SOURCE})
execute_process(COMMAND ${git} rev-parse HEAD
  OUTPUT_VARIABLE head RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
if(failed EQUAL 0)
  set(commit ${head})
  execute_process(COMMAND ${git} status --porcelain -- src apps cmake CMakeLists.txt
    OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    set(dirty true)
  endif()
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT
  "#define LONGCA_COMMIT \"${commit}\"\n#define LONGCA_COMMIT_DIRTY ${dirty}\n")
