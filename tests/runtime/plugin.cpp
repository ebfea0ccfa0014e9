/// A library with a C++ runtime of its own, as those are that Poise loads at run time: it throws, and lets through what
/// its caller throws.
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include <poise/types.hpp>

extern "C" __attribute__((visibility("default"))) void throw_one(int which, void (*call_back)()) {
  if (which == 0) throw poise::InputError("a sentence of the library");
  if (which == 1) throw std::bad_alloc();
  if (which == 2) static_cast<void>(std::vector<int>().at(3));
  if (which == 3) call_back();
  try {
    call_back();
  } catch (const poise::InputError& error) {
    throw poise::InputError(std::string("caught: ") + error.what());
  }
}
