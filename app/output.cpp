/// Checks of output paths, and writing that never leaves half a file.
#include "output.hpp"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include <poise/image.hpp>
#include <poise/types.hpp>
#include "base/file.hpp"

namespace poise::app {

namespace {

std::string reason() { return std::generic_category().message(errno); }

/// Why the path cannot be written, or nothing. Only trying to create the file asks the file system itself.
std::string obstacle(const std::string& path) {
  std::string found = obstacle_at(path);
  if (!found.empty()) return found;
  const bool exists = ::access(path.c_str(), F_OK) == 0;
  if (exists && ::access(path.c_str(), W_OK) != 0) return reason();
  if (is_special(path)) return "";
  // A file without a name, so that a program killed just now leaves none; where the file system has no such files, one
  // with a name.
  const int nameless = ::open(directory_of(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (nameless >= 0) {
    ::close(nameless);
    return "";
  }
  const std::string temporary = temporary_beside(path);
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return reason();
  ::close(descriptor);
  ::unlink(temporary.c_str());
  return "";
}

/// Pictures are of the kind that their name says.
void check_ending(const std::string& option, const std::string& path) {
  if (path == "-" || is_special(path)) return;
  const bool is_picture = option == "--images";
  const std::string ending = std::filesystem::path(path).extension().string();
  if (is_picture ? is_image_path(path) : option != "--plot" || ending.empty() || ending == ".svg") return;
  throw InputError(fmt::format("{}: found {}, expected a name that ends in {}", option, quote(path),
                               is_picture ? ".png, .ppm or .pgm" : ".svg"));
}

}  // namespace

void check_outputs(const std::vector<Output>& outputs) {
  std::vector<std::pair<std::string, std::string>> seen;
  for (const auto& [option, path, is_folder] : outputs) {
    if (path.empty()) continue;
    check_ending(option, path);
    std::error_code failed;
    const std::string place =
        path == "-" ? path
                    : std::filesystem::weakly_canonical(std::filesystem::absolute(path, failed), failed).string();
    if (failed) throw InputError(fmt::format("{}: cannot write {}: {}", option, path, failed.message()));
    for (const auto& [other, other_place] : seen) {
      if (place == other_place && !is_special(path)) {
        throw InputError(fmt::format("{} and {} both write to {}", other, option, path));
      }
    }
    seen.emplace_back(option, place);
    if (path == "-" || is_folder) continue;
    const std::string problem = obstacle(path);
    if (!problem.empty()) throw InputError(fmt::format("{}: cannot write {}: {}", option, path, problem));
  }
}

void write_output(const std::string& path, const std::string& content) {
  if (path == "-") {
    std::fwrite(content.data(), 1, content.size(), stdout);
    return;
  }
  write_atomically(path, content);
}

bool finish_stdout() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

}  // namespace poise::app
