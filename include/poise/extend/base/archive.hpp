/// Bytes in memory from which an object resumes exactly where it was: numbers and vectors of them, one after another.
///
/// A type that takes part has `template <class A> void archive(A& archive) { archive(first, second, ...); }`, one
/// function for both directions. What is written is for the same program on the same kind of processor; a file format
/// with versions and checksums is built around it, not in it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace poise {

template <class T, class A>
concept Archivable = requires(T& object, A& archive) {
  object.archive(archive);
};

class Saver {
 public:
  template <class... Ts>
  void operator()(const Ts&... objects) {
    (save(objects), ...);
  }
  [[nodiscard]] std::string take() { return std::move(bytes_); }

 private:
  template <class T>
  void save(const T& object) {
    if constexpr (Archivable<T, Saver>) {
      const_cast<T&>(object).archive(*this);  // the one function for both directions changes nothing here
    } else {
      static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
      bytes_.append(reinterpret_cast<const char*>(&object), sizeof object);
    }
  }
  template <class T>
  void save(const std::vector<T>& objects) {
    save(static_cast<std::uint64_t>(objects.size()));
    if constexpr (!Archivable<T, Saver> && std::is_trivially_copyable_v<T>) {
      bytes_.append(reinterpret_cast<const char*>(objects.data()), objects.size() * sizeof(T));
    } else {
      for (const T& object : objects) save(object);
    }
  }
  void save(const std::string& text) {
    save(static_cast<std::uint64_t>(text.size()));
    bytes_.append(text);
  }

  std::string bytes_;
};

/// Throws std::runtime_error where the bytes end too early.
class Loader {
 public:
  explicit Loader(std::string_view bytes) : bytes_(bytes) {}

  template <class... Ts>
  void operator()(Ts&... objects) {
    (load(objects), ...);
  }
  [[nodiscard]] bool at_end() const { return bytes_.empty(); }

 private:
  template <class T>
  void load(T& object) {
    if constexpr (Archivable<T, Loader>) {
      object.archive(*this);
    } else {
      static_assert(std::is_trivially_copyable_v<T> && !std::is_pointer_v<T>);
      read(&object, sizeof object);
    }
  }
  template <class T>
  void load(std::vector<T>& objects) {
    const std::uint64_t size = load_size(std::is_trivially_copyable_v<T> ? sizeof(T) : 1);
    objects.resize(size);
    if constexpr (!Archivable<T, Loader> && std::is_trivially_copyable_v<T>) {
      read(objects.data(), size * sizeof(T));
    } else {
      for (T& object : objects) load(object);
    }
  }
  void load(std::string& text) {
    text.resize(load_size(1));
    read(text.data(), text.size());
  }

  std::uint64_t load_size(std::size_t bytes_each) {
    std::uint64_t size = 0;
    read(&size, sizeof size);
    if (size > bytes_.size() / bytes_each) end_too_early();
    return size;
  }
  void read(void* to, std::size_t count) {
    if (count > bytes_.size()) end_too_early();
    if (count > 0) std::memcpy(to, bytes_.data(), count);
    bytes_.remove_prefix(count);
  }
  [[noreturn]] static void end_too_early() {
    throw std::runtime_error("the saved state ends too early: it was made by another model, sampler or version");
  }

  std::string_view bytes_;
};

}  // namespace poise
