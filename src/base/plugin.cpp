#include "base/plugin.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

namespace poise {

std::string find_plugin(const char* file) {
  std::error_code ignored;
  if (const char* folder = std::getenv("POISE_PLUGINS"); folder != nullptr && *folder != '\0') {
    const std::filesystem::path path = std::filesystem::path(folder) / file;
    if (std::filesystem::exists(path, ignored)) return path.string();
  }
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&find_plugin), &info) == 0 || info.dli_fname == nullptr) return "";
  std::filesystem::path here = std::filesystem::canonical(info.dli_fname, ignored);
  if (ignored) here = std::filesystem::canonical("/proc/self/exe", ignored);
  // The last is where wheels have it, as the module in lib/python3.x/site-packages/poise sees it.
  for (const char* folder : {".", "..", POISE_PLUGIN_FOLDER, "../../../poise"}) {
    const std::filesystem::path path = here.parent_path() / folder / file;
    if (std::filesystem::exists(path, ignored)) return path.lexically_normal().string();
  }
  return "";
}

void* load_plugin(const std::string& path, PluginNames names, std::string& why) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | (names == PluginNames::shared ? RTLD_GLOBAL : RTLD_LOCAL));
  if (library == nullptr) {
    const char* said = ::dlerror();
    why = said != nullptr ? said : "no reason given";
  }
  return library;
}

void* function_of_plugin(void* library, const char* name) { return ::dlsym(library, name); }

}  // namespace poise
