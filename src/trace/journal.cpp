/// Blocks of draws behind each other, each with a checksum.
#include <poise/trace/journal.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/format.h>

#include <poise/checksum.hpp>
#include <poise/file.hpp>
#include <poise/types.hpp>

#include <poise/trace/draw_queue.hpp>
#include "label_bits.hpp"

namespace poise {

namespace {

constexpr std::array<char, 16> kMagic = {'p', 'o', 'i', 's', 'e', ' ', 'd', 'r', 'a', 'w', 's', ' ', '1', '\n'};

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

std::uint64_t sum_of(const BlockHead& head, std::string_view content) {
  return checksum(content, checksum(bytes_of(head).substr(0, offsetof(BlockHead, sum))));
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

DrawJournal::DrawJournal(std::string path, const DrawShape& shape) : path_(std::move(path)), shape_(shape) {
  for (;;) {
    descriptor_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) throw InputError(fmt::format("Cannot write {}: {}.", path_, reason()));
    if (::flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      const std::string why = errno == EWOULDBLOCK ? "another program is writing it just now" : reason();
      ::close(std::exchange(descriptor_, -1));
      throw InputError(fmt::format("Cannot write {}: {}.", path_, why));
    }
    // Between opening and locking, whoever held it may have removed it.
    struct stat held {
    }, there{};
    if (::fstat(descriptor_, &held) == 0 && ::stat(path_.c_str(), &there) == 0 && held.st_ino == there.st_ino) return;
    ::close(std::exchange(descriptor_, -1));
  }
}

DrawJournal::~DrawJournal() {
  if (descriptor_ < 0) return;
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0 && status.st_size == 0) ::unlink(path_.c_str());  // it was never begun
  ::close(descriptor_);
}

void DrawJournal::fail() const { throw std::runtime_error(fmt::format("Cannot write {}: {}.", path_, reason())); }

void DrawJournal::write_all(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) fail();
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
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
  write_all(bytes_of(head_of(shape_)));
  draws_ = 0;
}

/// A block is written by one call where the system lets it be, so a kill leaves the whole of it or nothing as a rule,
/// and a part of it, which its checksum tells, otherwise.
void DrawJournal::write(const DrawBlock& block) {
  pack(block);
  const std::string_view content = std::string_view(packed_).substr(sizeof(BlockHead));
  BlockHead head{draws_, block.count, content.size(), 0};
  head.sum = sum_of(head, content);
  std::memcpy(packed_.data(), &head, sizeof head);
  write_all(packed_);
  draws_ += block.count;
}

void DrawJournal::sync() {
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != ENOTSUP) fail();
}

void DrawJournal::remove() { ::unlink(path_.c_str()); }

void DrawJournal::pack(const DrawBlock& block) {
  const bool bits = shape_.low != shape_.high;
  const std::size_t numbers = (block.monitors.size() + 2) * sizeof(double) * block.n_steps.size();
  packed_.resize(sizeof(BlockHead) + numbers + (bits ? (block.x.size() + 7) / 8 : block.x.size()));
  char* to = packed_.data() + sizeof(BlockHead);
  const auto add = [&](std::string_view bytes) { to = std::copy(bytes.begin(), bytes.end(), to); };
  for (const auto& monitor : block.monitors) add(bytes_of(monitor));
  add(bytes_of(block.acceptance_rate));
  add(bytes_of(block.n_steps));
  if (bits) {
    pack_labels(block.x, shape_.low, shape_.high, reinterpret_cast<std::uint8_t*>(to));
  } else {
    add(bytes_of(block.x));
  }
}

std::vector<DrawJournal::Place> DrawJournal::places() {
  std::vector<Place> found;
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
    if (sum_of(head, read_at(at + sizeof head, head.size)) != head.sum) return found;
    found.push_back({at, head.size, draws, head.count});
    at += sizeof head + head.size;
    draws += head.count;
  }
}

std::size_t DrawJournal::draws() {
  const std::vector<Place> found = places();
  return found.empty() ? 0 : found.back().first + found.back().count;
}

DrawBlock DrawJournal::block_at(const Place& place) const {
  const std::string bytes = read_at(place.at + sizeof(BlockHead), place.size);
  const std::size_t rows = shape_.chains * place.count;
  const std::size_t states = rows * shape_.variables;
  const bool bits = shape_.low != shape_.high;
  DrawBlock block;
  block.count = place.count;
  const std::size_t expected = rows * 8 * (shape_.monitors + 2) + (bits ? (states + 7) / 8 : states);
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
  block.x.resize(states);
  for (std::size_t k = 0; k < states; ++k) {
    block.x[k] = bits ? ((from[k / 8] >> k % 8 & 1) != 0 ? shape_.high : shape_.low) : from[k];
  }
  return block;
}

void DrawJournal::read(std::size_t draws, const std::function<void(const DrawBlock&)>& visit) {
  for (const Place& place : places()) {
    if (place.first >= draws) return;
    DrawBlock block = block_at(place);
    if (place.first + place.count > draws) {
      DrawQueue queue(shape_.chains);
      queue.push(std::move(block));
      block = queue.take(draws - place.first);
    }
    visit(block);
  }
}

void DrawJournal::cut(std::size_t draws) {
  std::uint64_t end = sizeof(FileHead);
  DrawBlock rest;
  draws_ = 0;
  for (const Place& place : places()) {
    if (place.first >= draws) break;
    if (place.first + place.count > draws) {
      DrawQueue queue(shape_.chains);
      queue.push(block_at(place));
      rest = queue.take(draws - place.first);
      break;
    }
    end = place.at + sizeof(BlockHead) + place.size;
    draws_ = place.first + place.count;
  }
  if (::ftruncate(descriptor_, static_cast<off_t>(end)) != 0 ||
      ::lseek(descriptor_, static_cast<off_t>(end), SEEK_SET) < 0) {
    fail();
  }
  if (rest.count > 0) write(rest);
}

}  // namespace poise
