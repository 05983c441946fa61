# longca_embed_pages(RESULT NAME FOLDER): the source, to be compiled into the library NAME, that carries the text of the
# pages configs/FOLDER/*.toml, in order of names. Its function is longca::NAME::embedded_FOLDER.
function(longca_embed_pages result name folder)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/configs/${folder}/*.toml)
  set(pages "")
  foreach(file IN LISTS files)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    get_filename_component(page ${file} NAME_WE)
    file(READ ${file} text)
    string(APPEND pages "    {\"${page}\", R\"toml(${text})toml\"},\n")
  endforeach()
  configure_file(${PROJECT_SOURCE_DIR}/cmake/embedded_pages.cpp.in embedded_${folder}.cpp @ONLY)
  set(${result} ${CMAKE_CURRENT_BINARY_DIR}/embedded_${folder}.cpp PARENT_SCOPE)
endfunction()
