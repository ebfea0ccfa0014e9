/// Ranks of a script that was started by mpirun or srun.
#include "base/ranks/ranks.hpp"

#include "bindings.hpp"

namespace poise::python {

namespace {

struct Started {
  bool looked = false;
  std::shared_ptr<Collective> ranks;
};

Started& started() {
  static Started state;
  return state;
}

/// At the end of the script, while Python is still there: a rank that others wait for says that it goes.
void leave_ranks() {
  if (!started().ranks) return;
  const nb::gil_scoped_release release;
  started().ranks->leave();
  started().ranks.reset();
}

}  // namespace

Collective* ranks() {
  Started& state = started();
  if (!state.looked) {
    state.ranks = start_ranks();
    state.looked = true;
    if (state.ranks) nb::module_::import_("atexit").attr("register")(nb::cpp_function(&leave_ranks));
  }
  return state.ranks.get();
}

void together(const std::function<void()>& work) {
  if (Collective* const all = ranks(); all != nullptr) {
    all->together(work);
  } else {
    work();
  }
}

bool is_root() { return ranks() == nullptr || ranks()->is_root(); }

void bind_ranks(nb::module_& module) {
  module.def("rank", [] { return ranks() == nullptr ? 0 : ranks()->rank(); });
  module.def("num_ranks", [] { return ranks() == nullptr ? 1 : ranks()->size(); });
}

}  // namespace poise::python
