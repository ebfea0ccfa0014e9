/// Targets that are Python code: states go out as arrays without copies, numbers come back.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include <fmt/format.h>

#include "models/user/batch_target.hpp"

#include "bindings.hpp"
#include "user_code.hpp"

namespace poise::python {

namespace {

/// Memory for arrays that go out, aligned for every library. A chunk comes back when the last array over it is gone, so
/// user code may keep what it was given.
class Pool : public std::enable_shared_from_this<Pool> {
 public:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kKept = 8;  // chunks that wait for the next batch of their size
  struct Chunk {
    std::shared_ptr<Pool> pool;
    std::size_t bytes;
    void* memory;
  };

  ~Pool() {
    for (const auto& [bytes, memory] : free_) release(memory);
  }

  Chunk* take(std::size_t bytes) {
    const auto same = std::find_if(free_.begin(), free_.end(), [&](const auto& chunk) { return chunk.first == bytes; });
    if (same == free_.end()) {
      return new Chunk{shared_from_this(), bytes, ::operator new (bytes, std::align_val_t{kAlignment})};
    }
    void* memory = same->second;
    free_.erase(same);
    return new Chunk{shared_from_this(), bytes, memory};
  }
  void give(std::size_t bytes, void* memory) {
    free_.emplace_back(bytes, memory);
    if (free_.size() <= kKept) return;
    release(free_.front().second);
    free_.erase(free_.begin());
  }

 private:
  static void release(void* memory) { ::operator delete (memory, std::align_val_t{kAlignment}); }
  std::vector<std::pair<std::size_t, void*>> free_;
};

class PythonFunction : public BatchFunction {
 public:
  PythonFunction(nb::object code, Appearance appearance, BatchShape shape)
      : code_(std::make_shared<UserCode>(std::move(code))),
        appearance_(std::move(appearance)),
        shape_(std::move(shape)) {
    has_gradient_ = nb::cast<bool>(code_->code().attr("has_gradient"));
    has_log_ratios_ = nb::cast<bool>(code_->code().attr("has_log_ratios"));
  }

  void log_prob(std::span<const Value> rows, std::span<double> out) override {
    call(rows, [&](const nb::object& x) { read_values(ask("log_prob", x), out); });
  }
  [[nodiscard]] bool has_gradient() const override { return has_gradient_; }
  [[nodiscard]] bool one_hot() const override { return appearance_.one_hot; }
  void gradient(std::span<const Value> rows, std::span<double> log_prob, std::span<double> out) override {
    call(rows, [&](const nb::object& x) {
      const nb::tuple both(ask("log_prob_and_gradient", x));
      read_values(both[0], log_prob);
      read(both[1], out, "gradient");
      const std::size_t width = out.size() / log_prob.size();
      for (std::size_t row = 0; row < log_prob.size(); ++row) {
        // Where log p is -inf the gradient is not read.
        if (std::isfinite(log_prob[row]) && !all_finite(out.subspan(row * width, width))) {
          throw InputError(
              fmt::format("the gradient of row {} of the batch is not finite, where log p is finite", row));
        }
      }
    });
  }
  [[nodiscard]] bool has_log_ratios() const override { return has_log_ratios_; }
  void log_ratios(std::span<const Value> rows, std::span<double> out) override {
    call(rows, [&](const nb::object& x) {
      read(ask("log_ratios", x), out, "log_ratios");
      refuse_what_is_no_log(out, "log_ratios");
    });
  }

  [[nodiscard]] std::shared_ptr<DeviceFunction> device_function(std::string& why) const override {
    return make_device_function(code_, appearance_, why);
  }

  [[nodiscard]] UserCode& code() const { return *code_; }

 private:
  template <class Use>
  void call(std::span<const Value> rows, Use&& use) {
    const nb::gil_scoped_acquire acquire;
    const std::size_t count = rows.size() / shape_.cardinalities.size();
    code_->guard([&] { use(array_of(rows, count)); });
    code_->called(count);
  }
  nb::object ask(const char* what, nb::handle x) { return code_->ask(code_->code().attr(what), x); }

  nb::object array_of(std::span<const Value> rows, std::size_t count) {
    if (appearance_.dtype == "float32") return fill<float>(rows, count);
    if (appearance_.dtype == "float64") return fill<double>(rows, count);
    if (appearance_.dtype == "int64") return fill<std::int64_t>(rows, count);
    if (appearance_.dtype == "int32") return fill<std::int32_t>(rows, count);
    if (appearance_.dtype == "int8") return fill<std::int8_t>(rows, count);
    if (appearance_.dtype == "uint8") return fill<std::uint8_t>(rows, count);
    throw InputError(fmt::format("dtype: found '{}', which states cannot have", appearance_.dtype));
  }

  template <class T>
  nb::object fill(std::span<const Value> rows, std::size_t count) {
    const std::size_t levels = appearance_.one_hot ? appearance_.levels : 1;
    Pool::Chunk* chunk = pool_->take(std::max<std::size_t>(1, rows.size() * levels * sizeof(T)));
    const nb::capsule owner(chunk, [](void* pointer) noexcept {
      const std::unique_ptr<Pool::Chunk> back(static_cast<Pool::Chunk*>(pointer));
      back->pool->give(back->bytes, back->memory);
    });
    T* out = static_cast<T*>(chunk->memory);
    std::vector<std::size_t> shape = {count};
    shape.insert(shape.end(), appearance_.shape.begin(), appearance_.shape.end());
    if (appearance_.one_hot) {
      std::fill_n(out, rows.size() * levels, T{0});
      for (std::size_t k = 0; k < rows.size(); ++k) out[k * levels + rows[k]] = T{1};
      shape.push_back(levels);
    } else if (shape_.labels.empty()) {
      for (std::size_t k = 0; k < rows.size(); ++k) out[k] = static_cast<T>(rows[k]);
    } else if (shape_.labels.size() == 2) {
      const T zero = static_cast<T>(shape_.labels[0]);
      const T span = static_cast<T>(shape_.labels[1] - shape_.labels[0]);
      for (std::size_t k = 0; k < rows.size(); ++k) out[k] = static_cast<T>(zero + span * static_cast<T>(rows[k]));
    } else {
      T labels[256] = {};
      for (std::size_t level = 0; level < shape_.labels.size(); ++level)
        labels[level] = static_cast<T>(shape_.labels[level]);
      for (std::size_t k = 0; k < rows.size(); ++k) out[k] = labels[rows[k]];
    }
    return nb::cast(nb::ndarray<nb::numpy, T>(out, shape.size(), shape.data(), owner), nb::rv_policy::reference);
  }

  /// The numbers of an array of 32 or 64 bits, which the Python side has made of whatever it got.
  static void read(nb::handle object, std::span<double> out, const char* what) {
    using Any = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
    Any array;
    if (!nb::try_cast<Any>(object, array)) {
      throw InputError(fmt::format("{} gave something that is not an array in the memory of this machine", what));
    }
    if (array.size() != out.size()) {
      throw InputError(fmt::format("{} gave {} numbers, expected {}", what, array.size(), out.size()));
    }
    if (array.dtype() == nb::dtype<double>()) {
      std::memcpy(out.data(), array.data(), out.size() * sizeof(double));
    } else if (array.dtype() == nb::dtype<float>()) {
      const auto* values = static_cast<const float*>(array.data());
      for (std::size_t k = 0; k < out.size(); ++k) out[k] = static_cast<double>(values[k]);
    } else {
      throw InputError(fmt::format("{} gave an array that is neither float32 nor float64", what));
    }
  }

  /// Without branches, so that it takes several numbers at a time.
  static bool all_finite(std::span<const double> values) {
    unsigned bad = 0;
    for (const double value : values) bad |= std::abs(value) <= std::numeric_limits<double>::max() ? 0U : 1U;
    return bad == 0;
  }

  static void read_values(nb::handle object, std::span<double> out) {
    read(object, out, "log_prob");
    refuse_what_is_no_log(out, "log_prob");
  }

  static void refuse_what_is_no_log(std::span<const double> values, const char* what) {
    for (const double value : values) {
      if (value < std::numeric_limits<double>::infinity()) continue;
      throw InputError(fmt::format("{} gave {} for a state that the chains looked at, expected a finite number or -inf",
                                   what, value));
    }
  }

  std::shared_ptr<UserCode> code_;
  Appearance appearance_;
  BatchShape shape_;
  std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();
  bool has_gradient_ = false;
  bool has_log_ratios_ = false;
};

/// A model of user code, with an account of how it was called.
struct UserModel {
  std::shared_ptr<PythonFunction> function;
  Model model;
};

UserModel user_model(const nb::object& code, const std::string& name, const std::vector<Index>& cardinalities,
                     const nb::dict& looks) {
  BatchShape shape{cardinalities, nb::cast<std::vector<double>>(looks["labels"])};
  Appearance appearance;
  appearance.dtype = nb::cast<std::string>(looks["dtype"]);
  appearance.shape = nb::cast<std::vector<std::size_t>>(looks["shape"]);
  appearance.one_hot = nb::cast<bool>(looks["one_hot"]);
  for (const Index k : cardinalities) appearance.levels = std::max<std::size_t>(appearance.levels, k);
  VariableLayout layout;
  layout.variables = static_cast<Index>(cardinalities.size());
  if (appearance.shape.size() == 2) {
    layout.rows = static_cast<Index>(appearance.shape[0]);
    layout.columns = static_cast<Index>(appearance.shape[1]);
  }
  for (const double label : shape.labels) layout.labels.push_back(static_cast<std::int8_t>(label));
  layout.names = nb::cast<std::vector<std::string>>(looks["names"]);
  for (const Index k : cardinalities) {
    if (k == 2) continue;
    layout.cardinalities = cardinalities;
    break;
  }
  auto function = std::make_shared<PythonFunction>(code, std::move(appearance), shape);
  Model model = callback_model(name, std::move(shape), function, std::move(layout));
  return {std::move(function), std::move(model)};
}

/// For the garbage collector: the code may hold what holds the model, as a module that owns its chains does.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const nb::handle code = nb::inst_ptr<UserModel>(self)->function->code().code();
  Py_VISIT(code.ptr());
  return 0;
}

int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<UserModel>(self)->function->code().release();
  return 0;
}

PyType_Slot slots[] = {
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)}, {Py_tp_clear, reinterpret_cast<void*>(clear)}, {0, nullptr}};

}  // namespace

void bind_targets(nb::module_& module) {
  nb::class_<UserModel>(module, "UserModel", nb::type_slots(slots))
      // A copy: what refers into this one would keep it alive where the garbage collector cannot see it.
      .def_prop_ro(
          "model", [](const UserModel& user) { return user.model; }, nb::rv_policy::move)
      .def_prop_ro("has_gradient", [](const UserModel& user) { return user.function->has_gradient(); })
      .def_prop_ro("calls", [](const UserModel& user) { return user.function->code().calls(); })
      .def_prop_ro("rows", [](const UserModel& user) { return user.function->code().rows(); })
      .def_prop_ro("seconds", [](const UserModel& user) { return user.function->code().seconds(); });
  module.def("user_model", &user_model, nb::arg("code"), nb::arg("name"), nb::arg("cardinalities"), nb::arg("looks"));
}

}  // namespace poise::python
