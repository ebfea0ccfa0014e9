/// Libraries of Poise that are loaded at run time, where they are installed: what speaks MPI, what runs on a GPU.
#pragma once

#include <string>

namespace poise {

/// The path of a library: in the folder that POISE_PLUGINS of the environment names, beside the program or the Python
/// module, or where it is installed. Empty where there is none.
[[nodiscard]] std::string find_plugin(const char* file);

/// Whether other libraries find the names in this one.
enum class PluginNames { own, shared };

/// Loads a library; nothing, and the reason, where that fails.
[[nodiscard]] void* load_plugin(const std::string& path, PluginNames names, std::string& why);

/// A function of a loaded library; nothing where it has none of that name.
[[nodiscard]] void* function_of_plugin(void* library, const char* name);

}  // namespace poise
