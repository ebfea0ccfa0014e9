/// User code on a GPU: its own tensors hold the states, and pointers to its answers come back.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "engines/rows.hpp"

#include "user_code.hpp"

namespace poise::python {

namespace {

/// Arrays are references to objects of Python, which keep what pointers lead to.
class PythonDeviceFunction final : public DeviceFunction {
 public:
  PythonDeviceFunction(std::shared_ptr<UserCode> code, const Appearance& appearance)
      : code_(std::move(code)),
        shape_(appearance.shape),
        is_double_(appearance.dtype == "float64"),
        shares_stream_(nb::cast<bool>(on_device().attr("shares_stream"))) {
    if (appearance.one_hot) shape_.push_back(appearance.levels);
  }
  ~PythonDeviceFunction() override {
    const nb::gil_scoped_acquire acquire;
    states_.reset();
    log_prob_.reset();
    gradient_.reset();
  }
  PythonDeviceFunction(const PythonDeviceFunction&) = delete;
  PythonDeviceFunction& operator=(const PythonDeviceFunction&) = delete;

  [[nodiscard]] bool shares_stream() const override { return shares_stream_; }

  [[nodiscard]] void* stream() override {
    const nb::gil_scoped_acquire acquire;
    return pointer(on_device().attr("stream")());
  }

  DeviceRoom room(std::size_t states) override {
    const nb::gil_scoped_acquire acquire;
    // Code that works elsewhere has a copy of its own.
    if (!shares_stream_ && states_.is_valid() && states == rows_) return {room_, is_double_};
    code_->guard([&] {
      nb::list shape;
      shape.append(states);
      for (const std::size_t side : shape_) shape.append(side);
      const nb::tuple found(on_device().attr("room")(nb::tuple(shape), is_double_));
      states_ = found[0];
      room_ = pointer(found[1]);
    });
    rows_ = states;
    return {room_, is_double_};
  }

  DeviceAnswers evaluate() override {
    const nb::gil_scoped_acquire acquire;
    DeviceAnswers answers;
    code_->guard([&] {
      const nb::tuple found(code_->ask(on_device().attr("evaluate"), states_));
      log_prob_ = found[0];
      gradient_ = found[1];
      answers = {{pointer(found[2]), nb::cast<bool>(found[3])}, {pointer(found[4]), nb::cast<bool>(found[5])}};
    });
    code_->called(rows_);
    return answers;
  }

 private:
  [[nodiscard]] nb::object on_device() const { return code_->code().attr("on_device"); }
  // Python has the address as a number. NOLINTNEXTLINE(performance-no-int-to-ptr)
  static void* pointer(nb::handle number) { return reinterpret_cast<void*>(nb::cast<std::uintptr_t>(number)); }

  std::shared_ptr<UserCode> code_;
  std::vector<std::size_t> shape_;
  bool is_double_;
  bool shares_stream_;
  nb::object states_;
  void* room_ = nullptr;
  std::size_t rows_ = 0;
  nb::object log_prob_;
  nb::object gradient_;
};

/// An array on the first GPU that other libraries take by DLPack, and where it is.
template <class Real>
std::pair<nb::object, std::uintptr_t> device_array_of(const std::vector<std::size_t>& shape) {
  std::size_t size = sizeof(Real);
  for (const std::size_t side : shape) size *= side;
  require_cuda();
  using Memory = std::shared_ptr<void>;
  auto memory = std::make_unique<Memory>(engine_table().gpu->allocate(size));
  void* const data = memory->get();
  const nb::capsule owner(memory.release(), [](void* kept) noexcept { delete static_cast<Memory*>(kept); });
  using Array = nb::ndarray<nb::array_api, Real, nb::device::cuda>;
  return {nb::cast(Array(data, shape.size(), shape.data(), owner), nb::rv_policy::reference),
          reinterpret_cast<std::uintptr_t>(data)};
}

}  // namespace

std::shared_ptr<DeviceFunction> make_device_function(const std::shared_ptr<UserCode>& code,
                                                     const Appearance& appearance, std::string& why) {
  const nb::gil_scoped_acquire acquire;
  why = nb::cast<std::string>(code->code().attr("on_device").attr("problem")());
  if (!why.empty()) return nullptr;
  return std::make_shared<PythonDeviceFunction>(code, appearance);
}

void bind_device_functions(nb::module_& module) {
  module.def(
      "device_array",
      [](const std::vector<std::size_t>& shape, bool is_double) {
        return is_double ? device_array_of<double>(shape) : device_array_of<float>(shape);
      },
      nb::arg("shape"), nb::arg("is_double"));
}

}  // namespace poise::python
