/// Max-cut and quadratic functions of binary variables (QUBO): their text formats, and the Ising models they become.
/// docs/files.md describes the formats for users.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/file.hpp"
#include "models/ising/ising_model.hpp"
#include "models/ising/ising_text.hpp"

namespace poise {

namespace {

struct Term {
  Index low;
  Index high;
  double value;
  std::size_t line;
};

/// What `p qubo topology variables diagonals couplers` declares.
struct Declared {
  std::size_t line;
  std::int64_t variables;
  std::int64_t diagonals;
  std::int64_t couplers;
};

class QuboReader {
 public:
  QuboReader(std::string_view content, std::string_view name) : name_(name), lines_(content) {
    max_variables_ = max_variables(content.size());
    lines_.see_comment = [this](std::string_view comment) { read_comment(comment); };
  }

  Qubo read() {
    while (lines_.next()) {
      const auto& words = lines_.words;
      if (words[0] == "c") continue;
      if (words[0] == "p" && !declared_ && terms_.empty()) {
        read_header();
      } else {
        read_term();
      }
    }
    if (terms_.empty() && !declared_) {
      throw InputError(fmt::format("{}: found no numbers, expected lines 'i j value'", name_));
    }
    if (declared_) check_counts();
    sort_terms();
    Qubo qubo;
    qubo.spins = spins_.value_or(false);
    const Index largest = terms_.empty() ? 0 : std::max_element(terms_.begin(), terms_.end(), by_high)->high;
    qubo.linear.assign(declared_ ? static_cast<std::size_t>(declared_->variables) : largest + std::size_t{1}, 0.0);
    for (const Term& term : terms_) {
      if (term.low == term.high) {
        qubo.linear[term.low] += term.value;
      } else if (!qubo.quadratic.empty() && qubo.quadratic.back().i == term.low &&
                 qubo.quadratic.back().j == term.high) {
        qubo.quadratic.back().coupling += term.value;
      } else {
        qubo.quadratic.push_back({term.low, term.high, term.value});
      }
    }
    return qubo;
  }

 private:
  static bool by_high(const Term& a, const Term& b) { return a.high < b.high; }

  /// `vartype=SPIN`, also with a colon, anywhere in a comment.
  void read_comment(std::string_view comment) {
    constexpr std::string_view key = "vartype";
    const std::size_t at = comment.find(key);
    if (at == std::string_view::npos) return;
    std::string_view rest = comment.substr(at + key.size());
    if (!rest.starts_with('=') && !rest.starts_with(':')) return;
    rest.remove_prefix(std::min(rest.find_first_not_of(" \t", 1), rest.size()));
    const std::string_view type = rest.substr(0, rest.find_first_of(" \t\r\v\f,;"));
    if (type != "SPIN" && type != "BINARY") {
      fail_at(name_, lines_.number, fmt::format("found vartype {}, expected SPIN or BINARY", quote(type)));
    }
    if (spins_ && *spins_ != (type == "SPIN")) {
      fail_at(name_, lines_.number, fmt::format("found vartype {}, expected one for the whole file", quote(type)));
    }
    spins_ = type == "SPIN";
  }

  void read_header() {
    const auto& words = lines_.words;
    if (words.size() != 6 || words[1] != "qubo") {
      fail_at(
          name_, lines_.number,
          fmt::format("found a line of {} words that begins with 'p', expected 'p qubo topology variables diagonals "
                      "couplers'",
                      words.size()));
    }
    const auto integer = [&](std::size_t place, const Expected& expected) {
      return integer_at(words[place], expected, name_, lines_.number);
    };
    declared_ = {lines_.number, integer(3, {"a number of variables", 1, max_variables_, kMaxVariablesReason}),
                 integer(4, {"a number of diagonals", 0, kMaxVariables}),
                 integer(5, {"a number of couplers", 0, kMaxEdges})};
  }

  void read_term() {
    const auto& words = lines_.words;
    if (words.size() != 3) {
      fail_at(name_, lines_.number, fmt::format("found {} words, expected 'i j value'", words.size()));
    }
    const Expected range = declared_
                               ? Expected{"the number of a variable,", 0, declared_->variables - 1}
                               : Expected{"the number of a variable,", 0, max_variables_ - 1, kMaxVariablesReason};
    const auto i = static_cast<Index>(integer_at(words[0], range, name_, lines_.number));
    const auto j = static_cast<Index>(integer_at(words[1], range, name_, lines_.number));
    terms_.push_back({std::min(i, j), std::max(i, j), real_at(words[2], name_, lines_.number), lines_.number});
  }

  void check_counts() const {
    const auto is_diagonal = [](const Term& term) { return term.low == term.high; };
    const std::int64_t diagonals = std::count_if(terms_.begin(), terms_.end(), is_diagonal);
    const std::int64_t couplers = static_cast<std::int64_t>(terms_.size()) - diagonals;
    if (diagonals == declared_->diagonals && couplers == declared_->couplers) return;
    throw InputError(fmt::format("{}: found {} diagonals and {} couplers, expected {} and {} as line {} declares",
                                 name_, diagonals, couplers, declared_->diagonals, declared_->couplers,
                                 declared_->line));
  }

  /// By pairs, and in the order of the file among equal ones.
  void sort_terms() {
    std::stable_sort(terms_.begin(), terms_.end(),
                     [](const Term& a, const Term& b) { return std::pair(a.low, a.high) < std::pair(b.low, b.high); });
    if (!declared_) return;
    const auto same = [](const Term& a, const Term& b) { return a.low == b.low && a.high == b.high; };
    const auto first = std::adjacent_find(terms_.begin(), terms_.end(), same);
    if (first == terms_.end()) return;
    const auto second = first + 1;
    fail_at(name_, second->line,
            fmt::format("found the pair {} {} of line {} again, expected each pair once", second->low, second->high,
                        first->line));
  }

  std::string_view name_;
  Lines lines_;
  std::int64_t max_variables_ = 0;
  std::optional<bool> spins_;
  std::optional<Declared> declared_;
  std::vector<Term> terms_;
};

}  // namespace

Qubo parse_qubo(std::string_view content, std::string_view name) { return QuboReader(content, name).read(); }

namespace {

struct FileSettings {
  std::string file;
  double beta = 1;
};

FileSettings read_settings(SpecReader& reader, std::string_view model) {
  FileSettings settings;
  settings.file = reader.text("file", "");
  if (settings.file.empty()) {
    reader.problem(fmt::format("no key 'file' in model '{}', expected {}:file=FILE", model, model));
  }
  settings.beta = read_beta(reader, 1 / kLargest, kLargest);
  return settings;
}

/// Numbers times beta must stay in the range of all fields and couplings.
void check_range(const IsingModel& model, double beta, const std::string& name) {
  const auto check = [&](double value) {
    if (std::abs(value) <= kLargest) return;
    throw InputError(
        fmt::format("{}: found a field or coupling of {} from its numbers and beta={}, expected at most "
                    "{} in size",
                    name, value, beta, kLargest));
  };
  for (const double value : model.field) check(value);
  for (const Edge& edge : model.edges) check(edge.coupling);
}

}  // namespace

/// An edge adds w (1 - x_i x_j) / 2 to the cut, so that beta cut(x) = beta W / 2 - sum of beta w / 2 x_i x_j, where W
/// is the sum of all weights.
IsingModel ising_of_cut(EdgeList graph, double beta, std::string name) {
  IsingModel model;
  model.variables = graph.variables;
  model.coupling = -beta / 2;
  model.edges = std::move(graph.edges);
  for (Edge& edge : model.edges) {
    model.objective_constant += edge.coupling / 2;
    edge.coupling *= -beta / 2;
  }
  model.field.assign(model.variables, 0.0);
  model.observed = model.field;
  model.objective = "cut";
  model.objective_scale = 1 / beta;
  check_range(model, beta, name);
  model.name = std::move(name);
  return model;
}

/// With x = (1 + s) / 2, a linear term q x is q/2 + q/2 s, and a product q x_i x_j is q/4 (1 + s_i + s_j + s_i s_j).
IsingModel ising_of_qubo(Qubo qubo, const QuboSettings& settings) {
  IsingModel model;
  model.variables = static_cast<Index>(qubo.linear.size());
  model.field = std::move(qubo.linear);
  model.edges = std::move(qubo.quadratic);
  model.zero_one = !qubo.spins;
  model.objective_constant = settings.offset;
  if (!qubo.spins) {
    for (double& value : model.field) {
      value /= 2;
      model.objective_constant += value;
    }
    for (Edge& edge : model.edges) {
      edge.coupling /= 4;
      model.field[edge.i] += edge.coupling;
      model.field[edge.j] += edge.coupling;
      model.objective_constant += edge.coupling;
    }
  }
  const double sign = settings.maximise ? settings.beta : -settings.beta;
  for (double& value : model.field) value *= sign;
  for (Edge& edge : model.edges) edge.coupling *= sign;
  model.observed = model.field;
  model.objective = "energy";
  model.objective_scale = 1 / sign;
  check_range(model, settings.beta, settings.name);
  model.name = settings.name;
  return model;
}

IsingModel make_maxcut(const Spec& spec) {
  SpecReader reader(spec, "model");
  const FileSettings settings = read_settings(reader, "maxcut");
  reader.finish({"file", "beta", "T"});
  IsingModel model = ising_of_cut(parse_maxcut(read_file(settings.file), settings.file), settings.beta, settings.file);
  model.name = fmt::format("maxcut:file={},beta={}", settings.file, settings.beta);
  return model;
}

IsingModel make_qubo(const Spec& spec) {
  SpecReader reader(spec, "model");
  const FileSettings settings = read_settings(reader, "qubo");
  const std::string sense = reader.choice("sense", "min", {"min", "max"});
  const double offset = reader.real("offset", 0.0, -kLargest, kLargest);
  reader.finish({"file", "beta", "T", "sense", "offset"});
  IsingModel model = ising_of_qubo(parse_qubo(read_file(settings.file), settings.file),
                                   {settings.beta, sense == "max", offset, settings.file});
  model.name = fmt::format("qubo:file={},beta={},sense={}", settings.file, settings.beta, sense);
  if (offset != 0.0) model.name += fmt::format(",offset={}", offset);
  return model;
}

}  // namespace poise
