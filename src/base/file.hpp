/// Whole files: read into memory, with one sentence for whatever goes wrong, and written atomically; checksums.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <poise/types.hpp>

namespace poise {

/// A file could not be read. what() is "PATH: found ..., expected ..."; `reason` is for sentences of the caller's own.
class FileError : public InputError {
 public:
  FileError(const std::string& sentence, std::string why) : InputError(sentence), reason(std::move(why)) {}
  std::string reason;  ///< "No such file or directory", "it is a directory", ...
};

inline constexpr std::uint64_t kLongestFile = std::uint64_t{1} << 31;

/// All bytes of a file, a pipe or a device. Throws a FileError, also where there are more than `most`.
[[nodiscard]] std::string read_file(const std::string& path, std::uint64_t most = kLongestFile);

/// Writes a file beside its place, waits until it is on the disk and renames it, so that whatever happens the old or
/// the new one is there as a whole. A pipe or a device cannot be replaced and is written to. Throws an InputError where
/// the path is wrong, and a std::runtime_error where the disk is; both are "Cannot write PATH: ... .".
void write_atomically(const std::string& path, std::string_view content);

/// Waits until what was renamed or created in a directory is on the disk. Does nothing where file systems cannot.
void sync_directory(const std::string& directory);

/// The name that write_atomically uses until the file is complete.
[[nodiscard]] std::string temporary_beside(const std::string& path);

/// A pipe or a device: something that cannot be replaced by renaming.
[[nodiscard]] bool is_special(const std::string& path);

/// The directory that holds a path, "." for a plain name.
[[nodiscard]] std::string directory_of(const std::string& path);

/// Why there can be no file at a path: its directory is missing or is none, or the path is itself a directory. Empty
/// where nothing stands in the way but, perhaps, permissions.
[[nodiscard]] std::string obstacle_at(const std::string& path);

// ---- text

/// Throws InputError: "NAME, line LINE: WHAT".
[[noreturn]] void fail_at(std::string_view name, std::size_t line, const std::string& what);

/// A text without the byte order mark that some programs begin files with.
[[nodiscard]] std::string_view without_byte_order_mark(std::string_view text);

/// Whether words are equal up to upper and lower case of ASCII letters.
[[nodiscard]] bool same_letters(std::string_view a, std::string_view b);

/// CRC-64 (that of xz) of bytes, or of bytes that follow others with the checksum `before`.
[[nodiscard]] std::uint64_t checksum(std::string_view bytes, std::uint64_t before = 0);

}  // namespace poise
