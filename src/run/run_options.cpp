/// What settings of a run make no sense.
#include <poise/run.hpp>

#include <cmath>

#include <fmt/format.h>

#include "run/memory.hpp"
#include "run/recorder.hpp"

namespace poise {

namespace {

/// Draws are held in memory unless there is a file, which can hold the states.
void check_memory(const RunOptions& options, const Model& model, std::vector<std::string>& problems) {
  const double count = static_cast<double>(options.chains) * static_cast<double>(options.draws);
  const double bytes = count * bytes_per_draw(model, options.keep);
  const double most = memory_for_draws(options);
  if (options.keep != Keep::draws || options.seconds > 0.0 || bytes <= most) return;
  problems.push_back(
      fmt::format("{} chains of {} draws of {} variables take {:.1f} GB, more than the {:.1f} GB that draws may take: "
                  "write them to a file, keep monitors only, or make fewer draws",
                  options.chains, options.draws, model.layout.variables, bytes / 1e9, most / 1e9));
}

}  // namespace

void RunOptions::check(const Model& model, bool has_sink) const {
  std::vector<std::string> problems;
  const Index n = model.layout.variables;
  if (chains == 0) problems.emplace_back("the number of chains must be at least 1");
  if (draws == 0 && seconds <= 0.0) problems.emplace_back("the number of draws must be at least 1");
  if (!(seconds >= 0.0) || std::isinf(seconds)) problems.emplace_back("the seconds must be a positive number");
  if (start == Start::given && given.size() != n && given.size() != chains * n) {
    problems.push_back(fmt::format("the initial state has {} values, but the model has {} variables", given.size(), n));
  } else if (start == Start::given) {
    for (std::size_t k = 0; k < given.size(); ++k) {
      const auto i = static_cast<Index>(k % n);
      if (given[k] < model.layout.cardinality(i)) continue;
      problems.push_back(fmt::format("the initial value of variable {} is level {}, but it has only {} levels", i,
                                     given[k], model.layout.cardinality(i)));
      break;
    }
  }
  if (!(memory >= 0.0) || std::isinf(memory)) problems.emplace_back("the memory for draws must be a positive number");
  if (!has_sink) check_memory(*this, model, problems);
  if (!problems.empty()) throw InputError(fmt::format("{}", fmt::join(problems, "; ")));
}

}  // namespace poise
