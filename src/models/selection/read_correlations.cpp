/// Correlations from .npy, .npz and .ld files; large ones stay in the file.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include <poise/extend/base/spec.hpp>
#include "base/file.hpp"
#include "models/selection/read_selection.hpp"

namespace poise {

namespace {

/// Bytes up to which a matrix is read into memory.
constexpr std::uint64_t kMostInMemory = std::uint64_t{1} << 28;
constexpr std::string_view kNumpyMagic = "\x93NUMPY";

/// What the head of a .npy file says.
struct NpyHead {
  std::size_t at = 0;     ///< of the numbers
  std::size_t bytes = 0;  ///< of a number
  std::size_t size = 0;   ///< rows, and columns
};

/// The text behind a key in a head such as {'descr': '<f8', 'fortran_order': False, 'shape': (3, 3), }.
std::string_view value_of(std::string_view head, std::string_view key, const std::string& name) {
  const std::size_t at = head.find(key);
  const std::size_t colon = at == std::string_view::npos ? at : head.find(':', at);
  if (colon == std::string_view::npos) {
    throw InputError(fmt::format("{}: found no {} in the head of a .npy file, expected it", name, quote(key)));
  }
  head.remove_prefix(std::min(head.size(), head.find_first_not_of(' ', colon + 1)));
  return head;
}

NpyHead read_npy_head(std::string_view bytes, const std::string& name) {
  const auto number = [&](std::size_t at, std::size_t count) {
    std::size_t value = 0;
    for (std::size_t k = count; k-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[at + k]);
    return value;
  };
  if (bytes.size() < 12 || bytes.substr(0, kNumpyMagic.size()) != kNumpyMagic) {
    throw InputError(fmt::format("{}: found a file without the head of .npy, expected one made by numpy.save", name));
  }
  const std::size_t version = number(6, 1);
  const std::size_t begin = version == 1 ? 10 : 12;
  const std::size_t length = number(8, begin - 8);
  if (length > bytes.size() - begin) {
    throw InputError(
        fmt::format("{}: found a head of {} bytes in {}, expected a whole .npy file", name, length, bytes.size()));
  }
  const std::string_view head = bytes.substr(begin, length);
  NpyHead out;
  out.at = begin + length;
  const std::string_view type = value_of(head, "descr", name);
  if (type.substr(0, 5) == "'<f8'") {
    out.bytes = 8;
  } else if (type.substr(0, 5) == "'<f4'") {
    out.bytes = 4;
  } else {
    throw InputError(fmt::format("{}: found numbers of type {}, expected float64 or float32", name,
                                 quote(type.substr(0, type.find(',')))));
  }
  // A symmetric matrix is the same by rows and by columns.
  std::string_view shape = value_of(head, "shape", name);
  std::size_t rows = 0;
  std::size_t columns = 0;
  const char* const end = shape.data() + shape.size();
  auto parsed = std::from_chars(shape.data() + std::min<std::size_t>(1, shape.size()), end, rows);
  const char* next = parsed.ptr;
  while (next != end && (*next == ',' || *next == ' ')) ++next;
  parsed = std::from_chars(next, end, columns);
  if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != ')' || rows != columns || rows == 0 ||
      rows > (std::size_t{1} << 28)) {
    throw InputError(fmt::format("{}: found an array of shape {}, expected a square matrix", name,
                                 quote(shape.substr(0, std::min(shape.size(), shape.find(')')) + 1))));
  }
  out.size = rows;
  if (rows > (bytes.size() - out.at) / out.bytes / columns || rows * columns * out.bytes != bytes.size() - out.at) {
    throw InputError(fmt::format("{}: found {} bytes of numbers, expected {} for {} x {}", name, bytes.size() - out.at,
                                 rows * columns * out.bytes, rows, columns));
  }
  return out;
}

double number_in(const char* at, std::size_t bytes) {
  if (bytes == 8) {
    double value;
    std::memcpy(&value, at, 8);
    return value;
  }
  float value;
  std::memcpy(&value, at, 4);
  return static_cast<double>(value);
}

/// A file that the system reads in as it is looked at.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat facts {};
    if (file < 0 || fstat(file, &facts) != 0) {
      const std::string why = std::strerror(errno);
      if (file >= 0) close(file);
      throw InputError(fmt::format("{}: {}", path, why));
    }
    size_ = static_cast<std::size_t>(facts.st_size);
    void* const at = size_ > 0 ? mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0) : MAP_FAILED;
    close(file);
    if (at == MAP_FAILED)
      throw InputError(fmt::format("{}: found a file that cannot be mapped, expected a .npy file", path));
    bytes_ = static_cast<const char*>(at);
  }
  ~MappedFile() { munmap(const_cast<char*>(bytes_), size_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  [[nodiscard]] std::string_view bytes() const { return {bytes_, size_}; }

 private:
  const char* bytes_ = nullptr;
  std::size_t size_ = 0;
};

class MappedCorrelations final : public CrossProducts {
 public:
  MappedCorrelations(const std::string& path, Index size, double scale)
      : file_(path), head_(read_npy_head(file_.bytes(), path)), path_(path), scale_(scale), cache_(kHeldBytes) {
    if (head_.size != size) {
      throw InputError(fmt::format("{}: found {} columns, expected {}, one for each z score", path, head_.size, size));
    }
    diagonal_.assign(size, scale);
    for (Index k = 0; k < size; ++k) {
      const double one = stored(k, k);
      if (std::abs(one - 1.0) <= kSloppy) continue;
      throw InputError(fmt::format("{}: found {} on the diagonal in row {}, expected 1", path, one, k + 1));
    }
  }

  [[nodiscard]] CrossColumn column(Index k) const override {
    return cache_.get(k, [&] {
      const auto made = std::make_shared<LineVector>(lines_of(size()));
      double* const out = numbers_of(*made);
      for (Index j = 0; j < size(); ++j) {
        const double r = j == k ? 1.0 : stored(k, j);
        if (!(std::abs(r) <= 1.0 + kSloppy)) {
          throw InputError(
              fmt::format("{}: found {} in row {} and column {}, expected a correlation", path_, r, k + 1, j + 1));
        }
        out[j] = scale_ * r;
      }
      return CrossColumn{k, 0, static_cast<Index>(8 * made->size()), out, made};
    });
  }
  [[nodiscard]] bool is_positive() const override { return false; }

 private:
  static constexpr double kHeldBytes = 1073741824.0;
  static constexpr double kSloppy = 1e-3;

  [[nodiscard]] double stored(std::size_t row, std::size_t column) const {
    return number_in(file_.bytes().data() + head_.at + (row * head_.size + column) * head_.bytes, head_.bytes);
  }

  MappedFile file_;
  NpyHead head_;
  std::string path_;
  double scale_;
  mutable ColumnCache cache_;
};

/// A word without the quotes around it.
std::string_view unquoted(std::string_view word) {
  return word.size() >= 2 && word.front() == '"' && word.back() == '"' ? word.substr(1, word.size() - 2) : word;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (;;) {
    const std::size_t at = line.find_first_not_of(" \t\r,");
    if (at == std::string_view::npos) return out;
    line.remove_prefix(at);
    const std::size_t length = std::min(line.find_first_of(" \t\r,"), line.size());
    out.push_back(unquoted(line.substr(0, length)));
    line.remove_prefix(length);
  }
}

/// Numbers in rows; a head of names, and names of rows, may go with them.
SymmetricMatrix read_rows(std::string_view text, const std::string& name) {
  SymmetricMatrix out;
  out.source = name;
  std::size_t columns = 0;
  std::vector<std::string> row_names;
  std::size_t rows = 0;
  for (std::size_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::vector<std::string_view> words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + 1));
    if (words.empty()) continue;
    const auto is_name = [](std::string_view word) {
      return !number_of(std::string(word)) && !same_letters(word, "nan") && !same_letters(word, "na");
    };
    if (rows == 0 && out.names.empty() && words.size() > 1 && std::all_of(words.begin(), words.end(), is_name)) {
      out.names.assign(words.begin(), words.end());
      continue;
    }
    // A name, and not a number that is missing: R has as many of those as rows.
    if (words.size() > 1 && is_name(words.front()) && (rows == 0 || row_names.size() == rows)) {
      row_names.emplace_back(words.front());
      words.erase(words.begin());
    }
    for (std::size_t k = 0; k < words.size(); ++k) {
      const std::optional<double> value = number_of(std::string(words[k]));
      if (!value) {
        fail_at(name, line, fmt::format("found {} as number {}, expected a correlation", quote(words[k]), k + 1));
      }
      out.dense.push_back(*value);
    }
    if (rows++ == 0) columns = words.size();
    if (words.size() != columns) {
      fail_at(name, line, fmt::format("found {} numbers, expected {} as in the first row", words.size(), columns));
    }
  }
  if (rows != columns || rows == 0) {
    throw InputError(fmt::format("{}: found {} rows of {} numbers, expected a square matrix", name, rows, columns));
  }
  if (out.names.size() == columns + 1) out.names.erase(out.names.begin());  // what stands above the names of rows
  if (out.names.empty()) out.names = row_names;
  if (!out.names.empty() && out.names.size() != columns) {
    throw InputError(fmt::format("{}: found {} names for {} columns", name, out.names.size(), columns));
  }
  if (!row_names.empty() && row_names != out.names) {
    throw InputError(fmt::format("{}: found names of rows that are not those of columns, expected the same", name));
  }
  return out;
}

}  // namespace

SymmetricMatrix read_correlations(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with("PK\x03\x04")) return read_npz_correlations(bytes, name);
  if (!bytes.starts_with(kNumpyMagic)) return read_rows(without_byte_order_mark(bytes), name);
  const NpyHead head = read_npy_head(bytes, name);
  SymmetricMatrix out;
  out.source = name;
  out.dense.resize(head.size * head.size);
  for (std::size_t e = 0; e < out.dense.size(); ++e) {
    out.dense[e] = number_in(bytes.data() + head.at + e * head.bytes, head.bytes);
  }
  return out;
}

SymmetricMatrix read_correlations(const std::string& path) {
  struct stat facts {};
  const bool is_large = stat(path.c_str(), &facts) == 0 && static_cast<std::uint64_t>(facts.st_size) > kMostInMemory;
  if (is_large && path.ends_with(".npy")) {
    SymmetricMatrix out;
    out.file = path;
    out.source = path;
    return out;
  }
  return read_correlations(read_data_file(path), path);
}

std::shared_ptr<const CrossProducts> map_correlations(const std::string& path, Index size, double scale) {
  return std::make_shared<MappedCorrelations>(path, size, scale);
}

}  // namespace poise
