# What `cmake --install` and `cpack` put where, beside the C library (apps/capi): the program in a folder of its own with
# all that it looks for beside itself, a link to it in bin/, and its suites and records. The folder runs from any place.
include(GNUInstallDirs)
set(program_folder ${CMAKE_INSTALL_LIBEXECDIR}/longca)
set(data_folder ${CMAKE_INSTALL_DATADIR}/longca)  # data_directory() of src/bench/data_directory.h

set(programs longca longca_host)
if(TARGET longca-rank)
  list(APPEND programs longca-rank longca_rank)
endif()
set_target_properties(${programs} PROPERTIES INSTALL_RPATH $ORIGIN)
install(TARGETS ${programs} RUNTIME_DEPENDENCY_SET longca_libraries COMPONENT program
  RUNTIME DESTINATION ${program_folder} LIBRARY DESTINATION ${program_folder})
install(RUNTIME_DEPENDENCY_SET longca_libraries COMPONENT program DESTINATION ${program_folder}
  PRE_INCLUDE_REGEXES ${LONGCA_BUNDLED} PRE_EXCLUDE_REGEXES ".*")
install(DIRECTORY $<TARGET_FILE_DIR:longca>/python DESTINATION ${program_folder} COMPONENT program
  PATTERN __pycache__ EXCLUDE)
file(RELATIVE_PATH from_bin_to_program "/${CMAKE_INSTALL_BINDIR}" "/${program_folder}")
install(CODE "
  set(bin \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}\")
  file(MAKE_DIRECTORY \"\${bin}\")
  file(CREATE_LINK ${from_bin_to_program}/longca \"\${bin}/longca\" SYMBOLIC)" COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/configs DESTINATION ${data_folder} COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/results DESTINATION ${data_folder} COMPONENT program
  FILES_MATCHING PATTERN "*.jsonl.gz" PATTERN "*.csv")
set(plotly ${PROJECT_SOURCE_DIR}/build/deps/python/plotly/package_data/plotly.min.js)
install(FILES ${plotly} DESTINATION ${data_folder} COMPONENT program OPTIONAL)  # says its own licence
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/longca COMPONENT program)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/longca COMPONENT library)

# The licences of what the binaries contain: of LONGCA_BUNDLED, and of headers that are compiled in.
file(GLOB flashinfer_licence ${PROJECT_SOURCE_DIR}/build/deps/python/flashinfer_python-*.dist-info/licenses/LICENSE)
foreach(package libfmt-dev libhwy-dev libtomlplusplus-dev libcli11-dev nlohmann-json3-dev)
  set(notice FILES /usr/share/doc/${package}/copyright RENAME ${package} OPTIONAL)
  foreach(component program library)
    install(${notice} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/longca/licenses COMPONENT ${component})
  endforeach()
  install(${notice} DESTINATION longca/licenses COMPONENT python EXCLUDE_FROM_ALL)
endforeach()
if(flashinfer_licence)
  foreach(component program library)
    install(FILES ${flashinfer_licence} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/longca/licenses RENAME flashinfer
      COMPONENT ${component})
  endforeach()
  install(FILES ${flashinfer_licence} DESTINATION longca/licenses RENAME flashinfer COMPONENT python EXCLUDE_FROM_ALL)
endif()

set(CPACK_GENERATOR TGZ DEB)
set(CPACK_PACKAGE_NAME longca)
set(CPACK_PACKAGE_VENDOR "the longca-bench authors")
set(CPACK_PACKAGE_CONTACT "the longca-bench authors")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Benchmark of long-context attention, and its C library")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME longca-${PROJECT_VERSION}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_COMPONENTS_ALL program library)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.36), libstdc++6 (>= 12), zlib1g")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "gnuplot-nox, openmpi-bin, python3")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
include(CPack)
