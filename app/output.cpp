/// Checks of output paths, and writing that never leaves half a file.
#include "output.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <poise/types.hpp>

namespace poise::app {

namespace {

std::string reason() { return std::generic_category().message(errno); }

/// A pipe or a device: something that cannot be replaced by renaming.
bool is_special(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

std::string directory_of(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string temporary_beside(const std::string& path) { return fmt::format("{}.{}.tmp", path, ::getpid()); }

/// Why the path cannot be written, or nothing. Only trying to create the file asks the file system itself.
std::string obstacle(const std::string& path) {
  struct stat status {};
  const std::string directory = directory_of(path);
  if (::stat(directory.c_str(), &status) != 0) {
    return fmt::format("the directory {} {}", directory, errno == ENOENT ? "does not exist" : "cannot be reached");
  }
  if (!S_ISDIR(status.st_mode)) return fmt::format("{} is not a directory", directory);
  if (path.back() == '/' || (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode))) return "it is a directory";
  if (is_special(path)) return ::access(path.c_str(), W_OK) == 0 ? "" : reason();
  if (::stat(path.c_str(), &status) == 0 && ::access(path.c_str(), W_OK) != 0) return reason();
  const std::string temporary = temporary_beside(path);
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) return reason();
  ::close(descriptor);
  ::unlink(temporary.c_str());
  return "";
}

void write_all(const std::string& path, const std::string& content) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "wb"), &std::fclose);
  const bool written = file != nullptr &&
                       std::fwrite(content.data(), 1, content.size(), file.get()) == content.size() &&
                       std::fflush(file.get()) == 0;
  if (!written) throw std::runtime_error(fmt::format("cannot write {}: {}", path, reason()));
}

}  // namespace

void check_outputs(const std::vector<Output>& outputs) {
  std::vector<Output> seen;
  for (const auto& [option, path] : outputs) {
    if (path.empty()) continue;
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
    if (path == "-") continue;
    const std::string problem = obstacle(path);
    if (!problem.empty()) throw InputError(fmt::format("{}: cannot write {}: {}", option, path, problem));
  }
}

void write_output(const std::string& path, const std::string& content) {
  if (path == "-") {
    std::fwrite(content.data(), 1, content.size(), stdout);
    return;
  }
  if (is_special(path)) return write_all(path, content);
  const std::string temporary = temporary_beside(path);
  try {
    write_all(temporary, content);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  if (std::rename(temporary.c_str(), path.c_str()) == 0) return;
  const std::string problem = reason();
  ::unlink(temporary.c_str());
  throw std::runtime_error(fmt::format("cannot write {}: {}", path, problem));
}

bool finish_stdout() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

}  // namespace poise::app
