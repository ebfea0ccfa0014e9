/// Work on one thread, signals on another; and JSON as Python objects.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "bindings.hpp"

namespace poise::python {

void Interruptible::run(const std::function<void()>& work, const std::function<void()>& look) {
  using namespace std::chrono_literals;
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
  std::exception_ptr failure;
  std::optional<nb::python_error> raised;
  {
    const nb::gil_scoped_release release;
    std::jthread worker([&] {
      try {
        work();
      } catch (...) {
        failure = std::current_exception();
      }
      const std::lock_guard lock(mutex);
      done = true;
      ended.notify_one();
    });
    std::unique_lock lock(mutex);
    while (!ended.wait_for(lock, 100ms, [&] { return done; })) {
      lock.unlock();
      {
        const nb::gil_scoped_acquire acquire;
        try {
          if (PyErr_CheckSignals() != 0) throw nb::python_error();
          if (!raised && look) look();
        } catch (nb::python_error& error) {
          if (!raised) raised.emplace(error);
          stop_ = true;
        }
      }
      lock.lock();
    }
    lock.unlock();
    worker.join();
  }
  if (raised && !raised->matches(PyExc_KeyboardInterrupt)) throw *raised;
  if (failure) std::rethrow_exception(failure);
  if (look) look();
}

nlohmann::json from_python(nb::handle value) {
  if (value.is_none()) return nullptr;
  if (nb::isinstance<nb::bool_>(value)) return nb::cast<bool>(value);
  if (nb::isinstance<nb::int_>(value)) return nb::cast<std::uint64_t>(value);
  if (nb::isinstance<nb::float_>(value)) return nb::cast<double>(value);
  return nb::cast<std::string>(nb::str(value));
}

nb::dict option_row(const Option& option, OptionKind kind, const OptionValue& value) {
  constexpr std::array kinds = {"whole", "real", "choice", "text", "flag"};
  nb::dict row;
  row["name"] = option.name;
  row["kind"] = kinds[static_cast<std::size_t>(kind)];
  row["help"] = option.help;
  row["least"] = option.least;
  row["most"] = option.most;
  row["choices"] = option.choices;
  row["optional"] = option.unset != nullptr;
  row["default"] = to_python(option_json(option, kind, value));
  row["default_text"] = default_text(option, kind, value);
  return row;
}

void use_keywords(std::vector<Warning>& warnings) {
  for (Warning& warning : warnings) {
    const std::size_t blank = warning.next.find(' ');
    if (!warning.next.starts_with("--") || blank == std::string::npos) continue;
    const std::string value = warning.next.substr(blank + 1);
    const bool is_number = value.find_first_not_of("0123456789.") == std::string::npos;
    warning.next = warning.next.substr(2, blank - 2) + (is_number ? "=" + value : "=\"" + value + "\"");
  }
}

nb::object to_python(const nlohmann::json& json) {
  switch (json.type()) {
    case nlohmann::json::value_t::null: return nb::none();
    case nlohmann::json::value_t::boolean: return nb::bool_(json.get<bool>());
    case nlohmann::json::value_t::number_integer: return nb::int_(json.get<std::int64_t>());
    case nlohmann::json::value_t::number_unsigned: return nb::int_(json.get<std::uint64_t>());
    case nlohmann::json::value_t::number_float: return nb::float_(json.get<double>());
    case nlohmann::json::value_t::string: return nb::str(json.get_ref<const std::string&>().c_str());
    case nlohmann::json::value_t::array: {
      nb::list out;
      for (const auto& entry : json) out.append(to_python(entry));
      return out;
    }
    default: {
      nb::dict out;
      for (const auto& [key, value] : json.items()) out[key.c_str()] = to_python(value);
      return out;
    }
  }
}

}  // namespace poise::python
