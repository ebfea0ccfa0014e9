# Files that are compiled as one: most of what a small file costs is what it includes and instantiates, and that is then
# paid once. Files that are not named here, the engines first of all, are compiled one by one.
option(POISE_UNITY "Compile small files of a folder together" ON)

# poise_together(target pattern...): each pattern, on paths below the folder of CMakeLists.txt, names one group of files.
function(poise_together target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${POISE_UNITY} UNITY_BUILD_MODE GROUP)
  get_target_property(sources ${target} SOURCES)
  foreach(pattern ${ARGN})
    set(group ${sources})
    list(FILTER group INCLUDE REGEX "${CMAKE_CURRENT_SOURCE_DIR}/${pattern}")
    string(MAKE_C_IDENTIFIER ${pattern} name)
    set_source_files_properties(${group} PROPERTIES UNITY_GROUP ${name})
  endforeach()
endfunction()
