/// Variable selection and fine-mapping: problems from arrays, and answers.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <mutex>

#include <poise/selection.hpp>

#include "bindings.hpp"

namespace poise::python {

namespace {

using Reals = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Columns = nb::ndarray<const double, nb::ndim<2>, nb::f_contig, nb::device::cpu>;
using Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Places = nb::ndarray<const std::uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Names = std::vector<std::string>;

/// A problem that Python holds on to.
struct Problem {
  std::shared_ptr<const SelectionProblem> problem;
};

template <class Array>
auto vector_of(const Array& array) {
  return std::vector<std::remove_const_t<typename Array::Scalar>>(array.data(), array.data() + array.size());
}

SelectionPrior prior_of(const nb::dict& settings, const std::optional<Reals>& inclusions, const Names& always) {
  SelectionPrior prior;
  read_settings(settings, prior);
  if (inclusions) prior.inclusions = vector_of(*inclusions);
  prior.always = always;
  return prior;
}

/// Runs without the interpreter lock, and tells of the progress ten times a second.
SelectionAnswer find(const Problem& problem, const nb::dict& settings, const nb::object& progress,
                     const std::string& start) {
  SelectOptions options;
  read_settings(settings, options);
  static_cast<void>(parse_sampler(options.sampler));
  SelectionAnswer answer;
  Interruptible place;
  std::mutex mutex;
  Progress now;
  bool news = false;
  SelectHooks hooks;
  hooks.stop = &place.stop();
  // Every rank gets the answer: what a script does with it next, it does on all.
  hooks.collective = ranks();
  hooks.draws_to = Collective::To::all;
  const Names starts = {"mixed", "empty", "greedy", "random"};
  const auto found = std::find(starts.begin(), starts.end(), start);
  if (found == starts.end()) throw InputError("start: found '" + start + "', expected mixed, empty, greedy or random");
  hooks.start = static_cast<SelectStart>(found - starts.begin());
  if (!progress.is_none() && is_root()) {
    hooks.progress = [&](const Progress& heard) {
      const std::lock_guard lock(mutex);
      now = heard;
      news = true;
    };
  }
  const auto look = [&] {
    Progress heard;
    {
      const std::lock_guard lock(mutex);
      if (!news) return;
      news = false;
      heard = now;
    }
    progress("select", heard.seconds, heard.seconds_left);
  };
  place.run([&] { answer = select(problem.problem, options, hooks); },
            hooks.progress ? std::function<void()>(look) : std::function<void()>());
  use_keywords(answer.warnings);
  return answer;
}

}  // namespace

void bind_selection(nb::module_& module) {
  nb::class_<Problem>(module, "SelectionProblem").def("model", [](const Problem& it) {
    return selection_model(it.problem);
  });
  module.def(
      "selection_of_table",
      [](const Columns& x, const Reals& y, const Names& names, const std::string& response, unsigned scaling,
         const nb::dict& settings, const std::optional<Reals>& inclusions, const Names& always) {
        RegressionTable table;
        table.names = names;
        table.x.assign(x.data(), x.data() + x.size());
        table.y = vector_of(y);
        table.response = response;
        return Problem{regression_problem(std::move(table), static_cast<Scaling>(scaling),
                                          prior_of(settings, inclusions, always))};
      },
      nb::arg("x"), nb::arg("y"), nb::arg("names"), nb::arg("response"), nb::arg("scaling"), nb::arg("settings"),
      nb::arg("inclusions").none(), nb::arg("always"));
  module.def(
      "selection_of_products",
      [](const Rows& xtx, const Reals& xty, double yty, double n, const Names& names, const nb::dict& settings,
         const std::optional<Reals>& inclusions, const Names& always) {
        CrossProductTable table;
        table.names = names;
        table.xtx.dense.assign(xtx.data(), xtx.data() + xtx.size());
        table.xtx.source = "X'X";
        table.xty = vector_of(xty);
        table.yty = yty;
        table.n = n;
        return Problem{cross_product_problem(std::move(table), prior_of(settings, inclusions, always))};
      },
      nb::arg("xtx"), nb::arg("xty"), nb::arg("yty"), nb::arg("n"), nb::arg("names"), nb::arg("settings"),
      nb::arg("inclusions").none(), nb::arg("always"));
  const auto of_scores = [](const Reals& z, const std::optional<double>& n, const Names& names) {
    SummaryTable table;
    table.names = names;
    table.is_numbered = names.empty();
    for (std::size_t j = 0; names.empty() && j < z.size(); ++j) table.names.push_back("x[" + std::to_string(j) + "]");
    table.z = vector_of(z);
    table.n = n;
    return table;
  };
  module.def(
      "selection_of_scores",
      [of_scores](const Reals& z, const std::optional<Rows>& r, const std::string& file, const std::optional<double>& n,
                  const Names& names, const nb::dict& settings, const std::optional<Reals>& inclusions,
                  const Names& always) {
        SymmetricMatrix matrix;
        if (r) {
          matrix.dense.assign(r->data(), r->data() + r->size());
        } else {
          matrix = read_correlations(file);
        }
        return Problem{
            summary_problem(of_scores(z, n, names), std::move(matrix), prior_of(settings, inclusions, always))};
      },
      nb::arg("z"), nb::arg("r").none(), nb::arg("file"), nb::arg("n").none(), nb::arg("names"), nb::arg("settings"),
      nb::arg("inclusions").none(), nb::arg("always"));
  module.def(
      "selection_of_sparse_scores",
      [of_scores](const Reals& z, const Places& starts, const Indices& rows, const Floats& values,
                  const std::optional<double>& n, const Names& names, const nb::dict& settings,
                  const std::optional<Reals>& inclusions, const Names& always) {
        SymmetricMatrix matrix;
        matrix.column_start.assign(starts.data(), starts.data() + starts.size());
        matrix.rows = vector_of(rows);
        matrix.values = vector_of(values);
        return Problem{
            summary_problem(of_scores(z, n, names), std::move(matrix), prior_of(settings, inclusions, always))};
      },
      nb::arg("z"), nb::arg("starts"), nb::arg("rows"), nb::arg("values"), nb::arg("n").none(), nb::arg("names"),
      nb::arg("settings"), nb::arg("inclusions").none(), nb::arg("always"));
  nb::class_<SelectionAnswer>(module, "SelectionAnswer")
      .def_ro("interrupted", &SelectionAnswer::interrupted)
      .def_prop_ro("warnings", [](const SelectionAnswer& it) { return to_python(it.warnings); })
      .def("json", [](const SelectionAnswer& it) { return nb::cast<nb::dict>(to_python(selection_json(it))); })
      .def("plot", &selection_plot, nb::arg("positions"))
      .def("table", &selection_table)
      .def("text", &selection_text, nb::arg("width"), nb::arg("most"));
  module.def("selection_prior", &described_options<SelectionPrior>);
  module.def("select_options", &described_options<SelectOptions>);
  module.def(
      "select",
      [](const Problem& problem, const nb::dict& settings, const nb::object& progress, const std::string& start) {
        SelectionAnswer answer;
        together([&] { answer = find(problem, settings, progress, start); });
        return answer;
      },
      nb::arg("problem"), nb::arg("settings"), nb::arg("progress").none(), nb::arg("start"));
}

}  // namespace poise::python
