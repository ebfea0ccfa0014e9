/// User code in Python, how it sees states, and an account of how it was called.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "models/user/batch_target.hpp"

#include "bindings.hpp"

namespace poise::python {

/// How user code sees a state.
struct Appearance {
  std::string dtype;               ///< of the elements: float32, ...
  std::vector<std::size_t> shape;  ///< of one state
  bool one_hot = false;            ///< one more dimension, with a one at the level
  std::size_t levels = 2;          ///< the largest number of them
};

/// The code has one reference here, however it is called, so that the garbage collector sees all of them.
class UserCode {
 public:
  explicit UserCode(nb::object code) : code_(std::move(code)) {}
  ~UserCode() {
    const nb::gil_scoped_acquire acquire;
    code_.reset();
  }
  UserCode(const UserCode&) = delete;
  UserCode& operator=(const UserCode&) = delete;

  [[nodiscard]] const nb::object& code() const { return code_; }
  void release() { code_.reset(); }

  /// Makes a KeyboardInterrupt of what is called a stop of the run. The lock is held.
  template <class Use>
  void guard(Use&& use) {
    try {
      use();
    } catch (nb::python_error& error) {
      if (error.matches(PyExc_KeyboardInterrupt)) throw RunStopped{};
      throw;
    }
  }
  /// The call itself, and the time it takes.
  nb::object ask(const nb::object& method, nb::handle x) {
    const auto started = std::chrono::steady_clock::now();
    nb::object answer = method(x);
    seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    return answer;
  }
  /// After a call about so many states.
  void called(std::size_t rows) {
    ++calls_;
    rows_ += rows;
  }

  [[nodiscard]] std::size_t calls() const { return calls_; }
  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] double seconds() const { return seconds_; }

 private:
  nb::object code_;
  std::size_t calls_ = 0;
  std::size_t rows_ = 0;
  double seconds_ = 0.0;
};

/// The code as it works on a GPU; null where it does not, and then `why` says so.
[[nodiscard]] std::shared_ptr<DeviceFunction> make_device_function(const std::shared_ptr<UserCode>& code,
                                                                   const Appearance& appearance, std::string& why);

}  // namespace poise::python
