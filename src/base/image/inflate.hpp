/// Compressed bytes, taken out chunk by chunk: what the readers of gzip and zip files share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <poise/types.hpp>

struct z_stream_s;  // zlib's, which stays out of this header

namespace poise {

/// No deflate stream is longer than this many times its compressed form, so that a size a file declares can be refused
/// before memory is taken for it.
inline constexpr std::uint64_t kMostDeflation = 1032;

enum class Wrapping {
  gzip,  ///< a header, then the stream, then its checksum and length, which are checked
  none   ///< the stream alone, as in zip files
};

/// A deflate stream in memory. What is damaged in it is an InputError that begins with `name`.
class Inflater {
 public:
  Inflater(std::string_view compressed, Wrapping wrapping, std::string name);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Fills `out` with what comes next and gives how many bytes that was: fewer than `out` holds only at the end.
  [[nodiscard]] std::size_t read(std::span<std::uint8_t> out);

  /// Compressed bytes after the end of the stream; known once `read` has come to it.
  [[nodiscard]] std::size_t left_over() const { return rest_.size(); }

 private:
  std::string_view rest_;
  std::string name_;
  std::unique_ptr<z_stream_s> stream_;
  bool ended_ = false;
};

/// Whether bytes begin as a gzip file does.
[[nodiscard]] bool is_gzip(std::string_view bytes);
/// What a gzip file holds: of all its members, as bgzip writes many. More than `most` bytes throw an InputError.
[[nodiscard]] std::string unzip(std::string_view compressed, const std::string& name, std::uint64_t most);

/// The checksum that gzip, zip and PNG share.
[[nodiscard]] std::uint32_t crc32_of(std::span<const std::uint8_t> bytes);

}  // namespace poise
