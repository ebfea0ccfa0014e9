# The rooms of the library: each folder below src/ is an OBJECT library, and libpoise is all of them together.
# docs/architecture.md says what is in a room; tools/check-includes says which rooms it may see.

# What every file of the library is compiled with.
add_library(poise_settings INTERFACE)
target_include_directories(poise_settings INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_features(poise_settings INTERFACE cxx_std_20)
target_compile_definitions(poise_settings INTERFACE POISE_VERSION="${PROJECT_VERSION}")
target_compile_options(poise_settings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion ${POISE_BITS}>)
target_link_libraries(poise_settings INTERFACE Threads::Threads fmt::fmt-header-only nlohmann_json::nlohmann_json)
# Files that are compiled together are included by one, whose anonymous namespace they share, and GCC 12 takes the moving of
# short strings for an overlap (GCC bug 105329).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(poise_settings INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage -Wno-restrict>)
endif()
if(POISE_SANITIZE)
  target_compile_options(poise_settings INTERFACE ${POISE_SANITIZE_OPTIONS})
  target_compile_definitions(poise_settings INTERFACE POISE_SANITIZED)
endif()

# poise_room(name [TOGETHER n] [ALONE regex] [WITHOUT regex] [LINK library...] [SOURCES file...]): the room of
# src/name/, all files below it unless SOURCES names them. n files are compiled at a time, those that match ALONE one by
# one, and those that match WITHOUT not at all.
function(poise_room name)
  cmake_parse_arguments(room "" "TOGETHER;ALONE;WITHOUT" "LINK;SOURCES" ${ARGN})
  if(NOT room_SOURCES)
    file(GLOB_RECURSE room_SOURCES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${name}/*.cpp)
  endif()
  if(room_WITHOUT)
    list(FILTER room_SOURCES EXCLUDE REGEX "${room_WITHOUT}")
  endif()
  add_library(poise_${name} OBJECT ${room_SOURCES})
  target_link_libraries(poise_${name} PRIVATE poise_settings ${room_LINK})
  # The Python module, a shared library, takes the same objects as the program.
  set_target_properties(poise_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(room_TOGETHER)
    set_target_properties(poise_${name} PROPERTIES UNITY_BUILD ${POISE_UNITY} UNITY_BUILD_BATCH_SIZE ${room_TOGETHER})
    if(room_ALONE)
      list(FILTER room_SOURCES INCLUDE REGEX "${room_ALONE}")
      set_source_files_properties(${room_SOURCES} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    endif()
  endif()
  set(POISE_ROOMS ${POISE_ROOMS} ${name} PARENT_SCOPE)
endfunction()
