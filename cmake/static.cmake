# How what users start or import is linked: with the runtime of C++ and, where there are any, static libraries in it, so
# that it needs the C library alone. libpoise says nothing of it: programs that link it decide for themselves.

# The program, the Python module and what they load at run time. Each keeps its C++ runtime to itself; what unwinds the
# stack stays the system's (libgcc_s, of which the C library is a user), since two copies of that pass no exceptions.
add_library(poise_runtime INTERFACE)
# Static libraries in a shared one. Those of Debian are compiled for programs (-fPIE): their symbols have to be hidden, and
# `stderr`, which libpng names and the C library has, has to be one of our own.
add_library(poise_shared INTERFACE)
if(POISE_STATIC AND CMAKE_SYSTEM_NAME STREQUAL "Linux" AND NOT POISE_SANITIZE)
  target_link_options(poise_runtime INTERFACE -static-libstdc++ -Wl,--exclude-libs,ALL)
  enable_language(C)
  target_sources(poise_shared INTERFACE ${PROJECT_SOURCE_DIR}/cmake/stderr.c)
  target_link_options(poise_shared INTERFACE -Wl,--wrap=stderr)
endif()
