/// Reading IDX files: a header of four numbers, the highest byte first, then the pixels.
#include "studies/images/idx.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <span>
#include <system_error>

#include <fmt/format.h>

#include "base/file.hpp"
#include "base/image/inflate.hpp"

namespace poise {
namespace {

constexpr std::size_t kHeaderBytes = 16;
constexpr std::size_t kChunk = std::size_t{1} << 22;  // memory is taken as pixels arrive
constexpr std::string_view kGzipMagic = "\x1f\x8b";

[[noreturn]] void fail(std::string_view name, const std::string& what) {
  throw InputError(fmt::format("{}: {}", name, what));
}

std::uint32_t number_at(std::span<const std::uint8_t> bytes, std::size_t at) {
  return std::uint32_t{bytes[at]} << 24 | std::uint32_t{bytes[at + 1]} << 16 | std::uint32_t{bytes[at + 2]} << 8 |
         std::uint32_t{bytes[at + 3]};
}

void check_magic(std::span<const std::uint8_t> header, std::string_view name) {
  const std::uint32_t magic = number_at(header, 0);
  constexpr std::string_view expected = "expected 0x00000803, an IDX file of bytes in three dimensions";
  if (magic == 0x803) return;
  if (magic >> 16 != 0) fail(name, fmt::format("found a file that begins with 0x{:08x}, {}", magic, expected));
  const char* labels = magic == 0x801 ? " (labels)" : "";
  fail(name, fmt::format("found type 0x{:02x} in {} dimensions{}, {}", magic >> 8, magic & 0xff, labels, expected));
}

/// The images that a header announces, still without pixels. `most_bytes` is the most that the file can hold.
IdxImages read_header(std::span<const std::uint8_t> header, std::string_view name, std::uint64_t most_bytes,
                      std::uint64_t max_bytes) {
  check_magic(header, name);
  const std::uint64_t count = number_at(header, 4);
  const std::uint64_t rows = number_at(header, 8);
  const std::uint64_t columns = number_at(header, 12);
  const std::string declared = fmt::format("{} images of {} x {} pixels", count, rows, columns);
  if (count == 0 || rows == 0 || columns == 0) fail(name, fmt::format("found {}, expected some", declared));
  const std::uint64_t pixels =
      rows * columns;  // of two numbers of 32 bits, so it fits; the product of all three may not
  if (pixels > max_bytes || count > max_bytes / pixels) {
    fail(name, fmt::format("found {}, expected at most {} bytes in all", declared, max_bytes));
  }
  if (count * pixels > most_bytes) {
    fail(name, fmt::format("found {} announced in a file too short for them, expected {} bytes of pixels", declared,
                           count * pixels));
  }
  return {count, rows, columns, {}};
}

IdxImages parse_plain(std::string_view content, std::string_view name, std::uint64_t max_bytes) {
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
  if (bytes.size() < kHeaderBytes) {
    fail(name, fmt::format("found {} bytes, expected an IDX header of {}", bytes.size(), kHeaderBytes));
  }
  const auto body = bytes.subspan(kHeaderBytes);
  IdxImages images = read_header(bytes, name, body.size(), max_bytes);
  const std::uint64_t size = std::uint64_t{images.count} * images.rows * images.columns;
  if (body.size() > size) {
    fail(name, fmt::format("found {} bytes after the last image, expected none", body.size() - size));
  }
  images.pixels.assign(body.begin(), body.end());
  return images;
}

IdxImages parse_gzip(std::string_view content, std::string_view name, std::uint64_t max_bytes) {
  Inflater inflater(content, Wrapping::gzip, std::string(name));
  std::array<std::uint8_t, kHeaderBytes> header{};
  const std::size_t got = inflater.read(header);
  if (got < kHeaderBytes) {
    fail(name, fmt::format("found {} bytes once unpacked, expected an IDX header of {}", got, kHeaderBytes));
  }
  IdxImages images = read_header(header, name, content.size() * kMostDeflation, max_bytes);
  const std::uint64_t size = std::uint64_t{images.count} * images.rows * images.columns;
  while (images.pixels.size() < size) {
    const std::size_t before = images.pixels.size();
    const std::size_t chunk = std::min<std::uint64_t>(kChunk, size - before);
    images.pixels.resize(before + chunk);
    if (inflater.read(std::span(images.pixels).subspan(before)) < chunk) {
      fail(name, fmt::format("found the end before all of {} images of {} x {} pixels, expected {} bytes of pixels",
                             images.count, images.rows, images.columns, size));
    }
  }
  std::array<std::uint8_t, 1> more{};
  if (inflater.read(more) > 0) fail(name, "found bytes after the last image, expected none");
  if (inflater.left_over() > 0) {
    fail(name, fmt::format("found {} bytes after its compressed data, expected none", inflater.left_over()));
  }
  return images;
}

std::string file_in(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  for (const char* name : {"train-images-idx3-ubyte", "train-images-idx3-ubyte.gz", "train-images.idx3-ubyte"}) {
    const std::filesystem::path file = std::filesystem::path(path) / name;
    if (std::filesystem::is_regular_file(file, ignored)) return file.string();
  }
  fail(path, "found a directory without them, expected train-images-idx3-ubyte or train-images-idx3-ubyte.gz in it");
}

}  // namespace

IdxImages read_idx(const std::string& path) {
  const std::string file = file_in(path);
  return parse_idx(read_file(file, kMaxIdxBytes + kHeaderBytes), file);
}

IdxImages parse_idx(std::string_view content, std::string_view name, std::uint64_t max_bytes) {
  if (content.empty()) fail(name, "found an empty file, expected images in the IDX format");
  return content.starts_with(kGzipMagic) ? parse_gzip(content, name, max_bytes) : parse_plain(content, name, max_bytes);
}

std::vector<std::uint8_t> binarise(const IdxImages& images, double threshold) {
  std::vector<std::uint8_t> bits(images.pixels.size());
  std::transform(images.pixels.begin(), images.pixels.end(), bits.begin(),
                 [&](std::uint8_t pixel) { return pixel / 255.0 > threshold ? 1 : 0; });
  return bits;
}

std::vector<std::uint8_t> binarise_sampled(const IdxImages& images, Rng& rng) {
  std::vector<std::uint8_t> bits(images.pixels.size());
  std::transform(images.pixels.begin(), images.pixels.end(), bits.begin(),
                 [&](std::uint8_t pixel) { return rng.uniform() < pixel / 255.0 ? 1 : 0; });
  return bits;
}

}  // namespace poise
