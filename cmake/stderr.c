/* Linked with --wrap=stderr: libraries that are compiled for programs find this one in a shared library. */
#include <stdio.h>

extern FILE* __real_stderr;
__attribute__((visibility("hidden"))) FILE* __wrap_stderr;

__attribute__((constructor(101))) static void set_stderr(void) { __wrap_stderr = __real_stderr; }
