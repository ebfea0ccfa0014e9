/// Exceptions of a library that is loaded at run time, where it and the program each have a C++ runtime of their own.
#include <cstdio>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include <dlfcn.h>

#include <poise/types.hpp>

namespace {

void throw_input_error() { throw poise::InputError("a sentence of the program"); }

int failures = 0;

/// Catches it as E, here and once more from where it was kept.
template <class E>
void expect(void (*throw_one)(int, void (*)()), int which, const std::string& part) {
  for (int round = 0; round < 2; ++round) {
    std::exception_ptr kept;
    try {
      throw_one(which, throw_input_error);
    } catch (const std::exception&) {
      kept = std::current_exception();
    }
    try {
      if (kept) std::rethrow_exception(kept);
      std::printf("%d: nothing was thrown\n", which);
      ++failures;
    } catch (const E& error) {
      if (std::string(error.what()).find(part) != std::string::npos) continue;
      std::printf("%d: caught '%s'\n", which, error.what());
      ++failures;
    } catch (const std::exception& error) {
      std::printf("%d: caught as another type: %s\n", which, error.what());
      ++failures;
    }
  }
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) return 2;
  void* const library = ::dlopen(words[1], RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    std::printf("%s\n", ::dlerror());
    return 2;
  }
  auto* const throw_one = reinterpret_cast<void (*)(int, void (*)())>(::dlsym(library, "throw_one"));
  if (throw_one == nullptr) return 2;
  expect<poise::InputError>(throw_one, 0, "of the library");
  expect<std::bad_alloc>(throw_one, 1, "bad_alloc");
  expect<std::out_of_range>(throw_one, 2, "vector");
  expect<poise::InputError>(throw_one, 3, "of the program");
  expect<poise::InputError>(throw_one, 4, "caught: a sentence of the program");
  return failures == 0 ? 0 : 1;
}
