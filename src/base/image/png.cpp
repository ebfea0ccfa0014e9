/// Reading and writing image files: PNG through libpng, Netpbm by hand.
#include <poise/image.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>
#include <png.h>

#include "base/file.hpp"
#include "base/image/inflate.hpp"

namespace poise {

namespace {

constexpr std::array<unsigned char, 8> kPngMagic{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

[[noreturn]] void fail(const std::string& name, const std::string& what) {
  throw InputError(fmt::format("{} {}.", name, what));
}

void check_size(const std::string& name, std::size_t width, std::size_t height, std::size_t max_pixels) {
  if (width == 0 || height == 0) fail(name, fmt::format("is an empty image of {} x {} pixels", width, height));
  if (width > max_pixels / height) {
    fail(name, fmt::format("is an image of {} x {} pixels; at most {} pixels can be read", width, height, max_pixels));
  }
}

/// libpng leaves a failed call by a long jump, which skips destructors: the two functions that jump therefore hold
/// nothing that has one. (Its simplified interface does without, but scrambles interlaced images of 16 bits.)
class PngReader {
 public:
  PngReader(std::span<const std::byte> bytes, const std::string& name)
      : name_(name), rest_(bytes), size_(bytes.size()) {
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, [](png_structp, png_const_charp) {});
    info_ = png_ != nullptr ? png_create_info_struct(png_) : nullptr;
    if (info_ == nullptr) throw std::bad_alloc();
    png_set_read_fn(png_, this, on_read);
    png_set_user_limits(png_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // check_size speaks plainer
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  Image read(std::size_t max_pixels) {
    if (!read_header()) damaged();
    const std::size_t width = png_get_image_width(png_, info_);
    const std::size_t height = png_get_image_height(png_, info_);
    check_size(name_, width, height, max_pixels);
    if (stored_row_bytes_ * height / kMostDeflation > size_) fail(name_, "is a PNG that is cut off");
    const std::size_t stored = png_get_channels(png_, info_);  // with alpha
    std::vector<std::uint8_t> pixels(width * height * stored);
    std::vector<png_bytep> rows(height);
    for (std::size_t y = 0; y < height; ++y) rows[y] = pixels.data() + y * width * stored;
    if (png_get_rowbytes(png_, info_) != width * stored || !read_rows(rows.data())) damaged();
    const bool alpha = stored % 2 == 0;
    Image image{width, height, alpha ? stored - 1 : stored, {}};
    image.pixels = alpha ? on_white(pixels, stored) : std::move(pixels);
    return image;
  }

 private:
  [[noreturn]] static void on_error(png_structp png, png_const_charp message) {
    auto* reader = static_cast<PngReader*>(png_get_error_ptr(png));
    std::snprintf(reader->message_.data(), reader->message_.size(), "%s", message);
    png_longjmp(png, 1);
  }

  static void on_read(png_structp png, png_bytep out, png_size_t count) {
    auto* reader = static_cast<PngReader*>(png_get_io_ptr(png));
    if (count > reader->rest_.size()) png_error(png, "the file is cut off");
    std::memcpy(out, reader->rest_.data(), count);
    reader->rest_ = reader->rest_.subspan(count);
  }

  [[nodiscard]] bool read_header() {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_info(png_, info_);
    stored_row_bytes_ = png_get_rowbytes(png_, info_);
    png_set_expand(png_);    // palettes, few bits and transparent colours
    png_set_scale_16(png_);  // 16 bits to 8
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  [[nodiscard]] bool read_rows(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

  static std::vector<std::uint8_t> on_white(const std::vector<std::uint8_t>& pixels, std::size_t stored) {
    std::vector<std::uint8_t> shown;
    shown.reserve(pixels.size() / stored * (stored - 1));
    for (std::size_t i = 0; i < pixels.size(); i += stored) {
      const unsigned alpha = pixels[i + stored - 1];
      for (std::size_t k = 0; k + 1 < stored; ++k) {
        shown.push_back(static_cast<std::uint8_t>((pixels[i + k] * alpha + 255 * (255 - alpha) + 127) / 255));
      }
    }
    return shown;
  }

  [[noreturn]] void damaged() const { fail(name_, fmt::format("is a damaged PNG ({})", message_.data())); }

  const std::string& name_;
  std::span<const std::byte> rest_;
  std::size_t size_;
  std::size_t stored_row_bytes_ = 0;
  std::array<char, 100> message_{};
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

/// Netpbm: "P" and a digit, width, height and (but for bitmaps) the largest value, then the samples.
class NetpbmReader {
 public:
  NetpbmReader(std::span<const std::byte> bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  Image read(std::size_t max_pixels) {
    const char kind = peek(1);
    at_ = 2;
    plain_ = kind <= '3';
    bitmap_ = kind == '1' || kind == '4';
    Image image;
    image.width = number("width");
    image.height = number("height");
    image.channels = kind == '3' || kind == '6' ? 3 : 1;
    check_size(name_, image.width, image.height, max_pixels);
    largest_ = bitmap_ ? 1 : number("largest value");
    if (largest_ == 0 || largest_ > 65535) {
      fail(name_, fmt::format("has {} as its largest value, and it must be in 1 .. 65535", largest_));
    }
    if (!plain_ && !is_space(peek(at_++))) fail(name_, "has no blank between its header and its samples");
    const std::size_t samples = image.width * image.height * image.channels;
    if (bytes_.size() - std::min(at_, bytes_.size()) < least_bytes(image, samples)) cut_off();
    image.pixels.resize(samples);
    if (bitmap_ && !plain_) {
      read_packed(image);
    } else {
      for (auto& pixel : image.pixels) pixel = scaled(plain_ ? plain_sample() : raw_sample());
    }
    return image;
  }

 private:
  static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
  static bool is_digit(char c) { return c >= '0' && c <= '9'; }
  [[noreturn]] void cut_off() const { fail(name_, "is a Netpbm image that is cut off"); }
  [[nodiscard]] char peek(std::size_t at) const { return at < bytes_.size() ? static_cast<char>(bytes_[at]) : '\0'; }

  [[nodiscard]] std::size_t least_bytes(const Image& image, std::size_t samples) const {
    if (bitmap_) return plain_ ? samples : (image.width + 7) / 8 * image.height;
    if (plain_) return 2 * samples - 1;
    return largest_ > 255 ? 2 * samples : samples;
  }

  void skip_blanks() {
    while (at_ < bytes_.size()) {
      if (peek(at_) == '#') {
        while (at_ < bytes_.size() && peek(at_) != '\n' && peek(at_) != '\r') ++at_;
      } else if (is_space(peek(at_))) {
        ++at_;
      } else {
        return;
      }
    }
  }

  std::size_t number(const char* what) {
    skip_blanks();
    if (at_ >= bytes_.size()) cut_off();
    if (!is_digit(peek(at_))) fail(name_, fmt::format("has no number at byte {}, where its {} must be", at_, what));
    std::size_t value = 0;
    for (; is_digit(peek(at_)); ++at_) {
      value = value * 10 + static_cast<std::size_t>(peek(at_) - '0');
      if (value > 4'000'000'000) fail(name_, fmt::format("has a {} that is too large", what));
    }
    return value;
  }

  std::size_t plain_sample() {
    if (!bitmap_) return number("next sample");
    skip_blanks();  // bitmaps need no blanks between their digits
    if (at_ >= bytes_.size()) cut_off();
    const char digit = peek(at_++);
    if (digit != '0' && digit != '1') fail(name_, fmt::format("has no 0 or 1 at byte {}", at_ - 1));
    return digit == '0' ? 1 : 0;
  }

  std::size_t raw_sample() {
    std::size_t value = std::to_integer<std::size_t>(bytes_[at_++]);
    if (largest_ > 255) value = value << 8 | std::to_integer<std::size_t>(bytes_[at_++]);
    return value;
  }

  [[nodiscard]] std::uint8_t scaled(std::size_t value) const {
    if (value > largest_) fail(name_, fmt::format("has a sample of {}, above its largest value {}", value, largest_));
    return static_cast<std::uint8_t>((value * 255 + largest_ / 2) / largest_);
  }

  void read_packed(Image& image) {
    const std::size_t stride = (image.width + 7) / 8;
    for (std::size_t i = 0; i < image.pixels.size(); ++i) {
      const std::size_t row = i / image.width;
      const std::size_t column = i % image.width;
      const auto byte = std::to_integer<unsigned>(bytes_[at_ + row * stride + column / 8]);
      image.pixels[i] = (byte >> (7 - column % 8) & 1U) != 0 ? 0 : 255;
    }
  }

  std::span<const std::byte> bytes_;
  const std::string& name_;
  std::size_t at_ = 0;
  std::size_t largest_ = 1;
  bool plain_ = false;
  bool bitmap_ = false;
};

bool begins_with(std::span<const std::byte> bytes, std::span<const unsigned char> magic) {
  return bytes.size() >= magic.size() && std::memcmp(bytes.data(), magic.data(), magic.size()) == 0;
}

bool is_netpbm(std::span<const std::byte> bytes) {
  if (bytes.size() < 3 || static_cast<char>(bytes[0]) != 'P') return false;
  const char kind = static_cast<char>(bytes[1]);
  const char next = static_cast<char>(bytes[2]);
  return kind >= '1' && kind <= '6' && (next == '#' || next == ' ' || (next >= '\t' && next <= '\r'));
}

/// In small letters, with its dot; nothing where there is none.
std::string ending_of(const std::string& path) {
  std::string ending = std::filesystem::path(path).extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return ending;
}

/// What libpng needs to know of an image to be written.
png_image header_of(const Image& image) {
  if (image.width == 0 || image.height == 0 || (image.channels != 1 && image.channels != 3) ||
      image.pixels.size() != image.width * image.height * image.channels || image.width > PNG_UINT_31_MAX ||
      image.height > PNG_UINT_31_MAX) {
    throw std::invalid_argument("write_png: the image has no pixels, or not as many as its size says");
  }
  png_image header{};
  header.version = PNG_IMAGE_VERSION;
  header.width = static_cast<png_uint_32>(image.width);
  header.height = static_cast<png_uint_32>(image.height);
  header.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  return header;
}

}  // namespace

Image parse_image(std::span<const std::byte> bytes, const std::string& name, std::size_t max_pixels) {
  if (bytes.empty()) fail(name, "is empty");
  if (begins_with(bytes, kPngMagic)) return PngReader(bytes, name).read(max_pixels);
  if (is_netpbm(bytes)) return NetpbmReader(bytes, name).read(max_pixels);
  const std::array<unsigned char, 3> jpeg{0xff, 0xd8, 0xff};
  const char* found = begins_with(bytes, jpeg) ? " (it is a JPEG)" : "";
  fail(name, fmt::format("is neither a PNG nor a PBM, PGM or PPM image{}", found));
}

Image read_image(const std::string& path) {
  std::string content;
  try {
    content = read_file(path);
  } catch (const FileError& error) {
    throw InputError(fmt::format("Cannot read {}: {}.", path, error.reason));
  }
  return parse_image(std::as_bytes(std::span(content)), path);
}

std::string png_bytes(const Image& image) {
  png_image header = header_of(image);
  std::string bytes(PNG_IMAGE_PNG_SIZE_MAX(header), '\0');
  png_alloc_size_t size = bytes.size();
  if (png_image_write_to_memory(&header, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr) == 0) {
    throw std::runtime_error("png_bytes: the picture cannot be encoded");
  }
  bytes.resize(size);
  return bytes;
}

void write_png(const std::string& path, const Image& image) { write_atomically(path, png_bytes(image)); }

bool is_image_path(const std::string& path) {
  const std::string ending = ending_of(path);
  return ending.empty() || ending == ".png" || ending == ".ppm" || ending == ".pgm";
}

void write_image(const std::string& path, const Image& image) {
  if (!is_image_path(path)) throw InputError(fmt::format("{}: expected a name that ends in .png, .ppm or .pgm", path));
  const std::string ending = ending_of(path);
  if (ending != ".ppm" && ending != ".pgm") return write_png(path, image);
  const Image picture = ending == ".pgm" ? to_gray(image) : to_rgb(image);
  std::string bytes = fmt::format("P{}\n{} {}\n255\n", ending == ".pgm" ? 5 : 6, picture.width, picture.height);
  bytes.append(reinterpret_cast<const char*>(picture.pixels.data()), picture.pixels.size());
  write_atomically(path, bytes);
}

}  // namespace poise
