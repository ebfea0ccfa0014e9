/// Blocks of draws behind each other, each with a checksum.
#include "store/journal.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <span>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <fmt/format.h>

#include <poise/types.hpp>
#include "base/file.hpp"

#include "store/draw_queue.hpp"

namespace poise {

namespace {

constexpr std::array<char, 16> kMagic = {'p', 'o', 'i', 's', 'e', ' ', 'd', 'r', 'a', 'w', 's', ' ', '2', '\n'};

struct FileHead {
  std::array<char, 16> magic = kMagic;
  std::uint64_t chains = 0;
  std::uint64_t monitors = 0;
  std::uint64_t variables = 0;
  std::int64_t low = 0;
  std::int64_t high = 0;
};

struct BlockHead {
  std::uint64_t first = 0;  // draws that come before
  std::uint64_t count = 0;
  std::uint64_t size = 0;  // of what follows
  std::uint64_t sum = 0;   // checksum of the three numbers and what follows
};

template <class T>
std::string_view bytes_of(const T& object) {
  return {reinterpret_cast<const char*>(&object), sizeof object};
}
template <class T>
std::string_view bytes_of(const std::vector<T>& objects) {
  return {reinterpret_cast<const char*>(objects.data()), objects.size() * sizeof(T)};
}

std::uint64_t sum_of(const BlockHead& head, std::span<const std::string_view> chunks) {
  std::uint64_t sum = checksum(bytes_of(head).substr(0, offsetof(BlockHead, sum)));
  for (const std::string_view chunk : chunks) sum = checksum(chunk, sum);
  return sum;
}

FileHead head_of(const DrawShape& shape) {
  return {kMagic, shape.chains, shape.monitors, shape.variables, shape.low, shape.high};
}

std::string reason() { return std::generic_category().message(errno); }

}  // namespace

DrawShape draw_shape(const VariableLayout& layout, std::size_t chains, std::size_t monitors, bool states) {
  DrawShape shape{chains, monitors, states ? layout.variables : 0, layout.label(0), layout.label(0)};
  Index most = 1;
  for (Index i = 0; i < layout.variables; ++i) most = std::max(most, layout.cardinality(i));
  if (most == 2) shape.high = layout.label(1);
  return shape;
}

DrawJournal::DrawJournal(std::string path, const DrawShape& shape)
    : path_(std::move(path)), shape_(shape), file_(path_), descriptor_(file_.descriptor()) {}

DrawJournal::~DrawJournal() {
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0 && status.st_size == 0) ::unlink(path_.c_str());  // it was never begun
}

void DrawJournal::fail() const { throw std::runtime_error(fmt::format("Cannot write {}: {}.", path_, reason())); }

/// By one call where the system lets it be, so a kill leaves all of it or nothing as a rule, and a fraction of it,
/// which the checksum of a block tells, otherwise.
void DrawJournal::write_all(std::vector<std::string_view> chunks) {
  std::erase_if(chunks, [](std::string_view chunk) { return chunk.empty(); });
  std::vector<iovec> left;
  // Nothing is written through the pointers, which are not const because the same struct serves reading.
  for (const std::string_view chunk : chunks) left.push_back({const_cast<char*>(chunk.data()), chunk.size()});
  for (auto next = left.begin(); next != left.end();) {
    const auto most = std::min<std::ptrdiff_t>(left.end() - next, IOV_MAX);
    const ssize_t written = ::writev(descriptor_, &*next, static_cast<int>(most));
    if (written < 0 && errno != EINTR) fail();
    for (auto done = static_cast<std::size_t>(std::max<ssize_t>(written, 0)); done > 0;) {
      const std::size_t taken = std::min(done, next->iov_len);
      next->iov_base = static_cast<char*>(next->iov_base) + taken;
      next->iov_len -= taken;
      done -= taken;
      if (next->iov_len == 0) ++next;
    }
  }
}

std::string DrawJournal::read_at(std::uint64_t at, std::size_t count) const {
  std::string bytes(count, '\0');
  std::size_t got = 0;
  while (got < count) {
    const ssize_t read = ::pread(descriptor_, bytes.data() + got, count - got, static_cast<off_t>(at + got));
    if (read < 0 && errno == EINTR) continue;
    if (read <= 0) break;
    got += static_cast<std::size_t>(read);
  }
  bytes.resize(got);
  return bytes;
}

void DrawJournal::begin() {
  if (::ftruncate(descriptor_, 0) != 0 || ::lseek(descriptor_, 0, SEEK_SET) != 0) fail();
  const FileHead head = head_of(shape_);
  write_all({bytes_of(head)});
  draws_ = 0;
}

void DrawJournal::write(const DrawBatch& block) {
  BlockHead head{draws_, block.count, 0, 0};
  std::vector<std::string_view> chunks = {bytes_of(head)};
  for (const auto& monitor : block.monitors) chunks.push_back(bytes_of(monitor));
  chunks.push_back(bytes_of(block.acceptance_rate));
  chunks.push_back(bytes_of(block.n_steps));
  chunks.push_back(stored_states(block));
  const auto content = std::span<const std::string_view>(chunks).subspan(1);
  for (const std::string_view chunk : content) head.size += chunk.size();
  head.sum = sum_of(head, content);
  write_all(std::move(chunks));
  draws_ += block.count;
}

void DrawJournal::sync() {
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != ENOTSUP) fail();
}

void DrawJournal::remove() { ::unlink(path_.c_str()); }

std::string_view DrawJournal::stored_states(const DrawBatch& block) {
  if (!shape_.has_bits() || block.x.empty()) return bytes_of(block.x);
  if (!block.bits.empty()) return bytes_of(block.bits);
  const std::size_t rows = block.x.size() / shape_.variables;
  const std::size_t width = shape_.bytes_of_state();
  packed_.resize(rows * width);
  for (std::size_t row = 0; row < rows; ++row) {
    pack_labels(std::span(block.x).subspan(row * shape_.variables, shape_.variables), shape_.low, shape_.high,
                packed_.data() + row * width);
  }
  return bytes_of(packed_);
}

std::vector<DrawJournal::BlockPosition> DrawJournal::blocks() {
  std::vector<BlockPosition> found;
  const FileHead wanted = head_of(shape_);
  if (read_at(0, sizeof wanted) != bytes_of(wanted)) return found;
  std::uint64_t at = sizeof wanted;
  std::size_t draws = 0;
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0) return found;
  const auto end = static_cast<std::uint64_t>(status.st_size);
  for (;;) {
    BlockHead head;
    const std::string bytes = read_at(at, sizeof head);
    if (bytes.size() < sizeof head) return found;
    std::memcpy(&head, bytes.data(), sizeof head);
    if (head.first != draws || head.count == 0 || head.size > end - at - sizeof head) return found;
    const std::string content = read_at(at + sizeof head, head.size);
    const std::string_view chunk = content;
    if (sum_of(head, {&chunk, 1}) != head.sum) return found;
    found.push_back({at, head.size, draws, head.count});
    at += sizeof head + head.size;
    draws += head.count;
  }
}

std::size_t DrawJournal::draws() {
  const std::vector<BlockPosition> found = blocks();
  return found.empty() ? 0 : found.back().first + found.back().count;
}

DrawBatch DrawJournal::block_at(const BlockPosition& at) const {
  const std::string bytes = read_at(at.offset + sizeof(BlockHead), at.size);
  const std::size_t rows = shape_.chains * at.count;
  const std::size_t width = shape_.bytes_of_state();
  DrawBatch block;
  block.count = at.count;
  const std::size_t expected = rows * 8 * (shape_.monitors + 2) + rows * width;
  if (bytes.size() != expected) throw std::runtime_error(fmt::format("{} has a block of a wrong size.", path_));
  const char* from = bytes.data();
  const auto take = [&](auto& values) {
    values.resize(rows);
    std::memcpy(values.data(), from, rows * 8);
    from += rows * 8;
  };
  block.monitors.resize(shape_.monitors);
  for (auto& monitor : block.monitors) take(monitor);
  take(block.acceptance_rate);
  take(block.n_steps);
  block.x.resize(rows * shape_.variables);
  if (!shape_.has_bits()) {
    std::copy_n(from, block.x.size(), block.x.begin());
    return block;
  }
  for (std::size_t row = 0; row < rows; ++row, from += width) {
    unpack_labels(reinterpret_cast<const std::uint8_t*>(from), shape_.low, shape_.high,
                  std::span(block.x).subspan(row * shape_.variables, shape_.variables));
  }
  return block;
}

void DrawJournal::read(std::size_t draws, const std::function<void(const DrawBatch&)>& visit) {
  for (const BlockPosition& at : blocks()) {
    if (at.first >= draws) return;
    DrawBatch block = block_at(at);
    if (at.first + at.count > draws) {
      DrawQueue queue(shape_.chains);
      queue.push(std::move(block));
      block = queue.take(draws - at.first);
    }
    visit(block);
  }
}

void DrawJournal::cut(std::size_t draws) {
  std::uint64_t end = sizeof(FileHead);
  DrawBatch rest;
  draws_ = 0;
  for (const BlockPosition& at : blocks()) {
    if (at.first >= draws) break;
    if (at.first + at.count > draws) {
      DrawQueue queue(shape_.chains);
      queue.push(block_at(at));
      rest = queue.take(draws - at.first);
      break;
    }
    end = at.offset + sizeof(BlockHead) + at.size;
    draws_ = at.first + at.count;
  }
  if (::ftruncate(descriptor_, static_cast<off_t>(end)) != 0 ||
      ::lseek(descriptor_, static_cast<off_t>(end), SEEK_SET) < 0) {
    fail();
  }
  if (rest.count > 0) write(rest);
}

}  // namespace poise
