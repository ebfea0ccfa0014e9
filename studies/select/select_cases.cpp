/// Data of the experiment on variable selection: simulated columns, or those of files.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>

#include <poise/extend/base/rng.hpp>
#include <poise/extend/base/spec.hpp>
#include "base/file.hpp"
#include "base/npz.hpp"

#include "studies/select/select.hpp"

namespace poise::reproduction {

namespace {

/// Variants that share a genealogy, and branches of it that they lie on.
constexpr Index kBlock = 25;
constexpr std::size_t kBranches = 5;
constexpr std::size_t kFounders = 16;
/// Part of the genotypes that are wrong: no two variants are then quite the same.
constexpr double kWrong = 0.005;
/// Probability that a haplotype copies from another founder at the next variant.
constexpr double kSwitch = 0.01;
/// Columns of Y that are looked at.
constexpr std::size_t kMostTraits = 4;

/// Genotypes by columns: sums of two haplotypes, each a mosaic of founders.
std::vector<double> genotypes(std::size_t n, Index p, Rng& rng) {
  std::vector<double> out(n * p, 0.0);
  std::vector<std::vector<bool>> branches(kBranches, std::vector<bool>(kFounders));
  std::vector<std::size_t> founder(2 * n);
  for (std::size_t& one : founder) one = static_cast<std::size_t>(rng.uniform() * kFounders);
  for (Index j = 0; j < p; ++j) {
    if (j % kBlock == 0) {
      for (std::vector<bool>& branch : branches) {
        const double frequency = 0.15 + 0.35 * rng.uniform();
        for (std::size_t f = 0; f < kFounders; ++f) branch[f] = rng.uniform() < frequency;
        branch[static_cast<std::size_t>(rng.uniform() * kFounders)] = true;  // no branch is without an heir
      }
    }
    const std::vector<bool>& branch = branches[static_cast<std::size_t>(rng.uniform() * kBranches)];
    for (std::size_t h = 0; h < 2 * n; ++h) {
      if (rng.uniform() < kSwitch) founder[h] = static_cast<std::size_t>(rng.uniform() * kFounders);
      const bool allele = branch[founder[h]] != (rng.uniform() < kWrong);
      out[j * n + h / 2] += allele ? 1.0 : 0.0;
    }
  }
  return out;
}

/// Columns that each resemble the one before.
std::vector<double> autoregressive(std::size_t n, Index p, double correlation, Rng& rng) {
  std::vector<double> out(n * p);
  for (Index j = 0; j < p; ++j) {
    for (std::size_t i = 0; i < n; ++i) {
      const double before = j > 0 ? out[(j - 1) * n + i] : rng.normal();
      out[j * n + i] = correlation * before + std::sqrt(1.0 - correlation * correlation) * rng.normal();
    }
  }
  return out;
}

std::vector<double> standardised(const std::vector<double>& x, std::size_t n) {
  std::vector<double> out = x;
  for (std::size_t first = 0; first < out.size(); first += n) {
    double mean = 0.0;
    for (std::size_t i = 0; i < n; ++i) mean += out[first + i] / static_cast<double>(n);
    double squares = 1e-300;
    for (std::size_t i = 0; i < n; ++i) squares += (out[first + i] - mean) * (out[first + i] - mean);
    for (std::size_t i = 0; i < n; ++i) {
      out[first + i] = (out[first + i] - mean) / std::sqrt(squares / static_cast<double>(n - 1));
    }
  }
  return out;
}

struct Effects {
  std::vector<Index> causes;
  double size;  ///< of a standardised column, in standard deviations of the residuals
};

/// y = sum of the causes times the size, every second with the other sign where there are more than two, and noise.
RegressionTable table_of(std::vector<double> x, std::size_t n, const Effects& effects, Rng& rng) {
  RegressionTable table;
  const std::vector<double> columns = standardised(x, n);
  table.x = std::move(x);
  for (std::size_t j = 0; j < table.x.size() / n; ++j) table.names.push_back(fmt::format("x[{}]", j));
  table.y.resize(n);
  for (double& value : table.y) value = rng.normal();
  for (std::size_t k = 0; k < effects.causes.size(); ++k) {
    const double size = effects.causes.size() > 2 && k % 2 == 1 ? -effects.size : effects.size;
    for (std::size_t i = 0; i < n; ++i) table.y[i] += size * columns[effects.causes[k] * n + i];
  }
  return table;
}

/// Two columns whose sum resembles a third one more than they do themselves: the third has the largest z score, and a
/// chain that includes it has to pass through worse models.
std::vector<Index> masked_causes(const std::vector<double>& x, std::size_t n) {
  const std::vector<double> columns = standardised(x, n);
  const auto p = static_cast<Index>(x.size() / n);
  std::vector<double> r(std::size_t{p} * p);
  for (Index i = 0; i < p; ++i) {
    for (Index j = 0; j <= i; ++j) {
      double sum = 0.0;
      for (std::size_t k = 0; k < n; ++k) sum += columns[i * n + k] * columns[j * n + k];
      r[i * p + j] = r[j * p + i] = sum / static_cast<double>(n - 1);
    }
  }
  std::vector<Index> best = {0, p / 2};
  double most = -1.0;
  for (Index i = 0; i < p; ++i) {
    for (Index j = 0; j < i; ++j) {
      if (std::abs(r[i * p + j]) > 0.3) continue;
      const double size = std::sqrt(2.0 + 2.0 * r[i * p + j]);
      for (Index k = 0; k < p; ++k) {
        if (std::max(r[i * p + k], r[j * p + k]) > 0.8) continue;
        const double likeness = (r[i * p + k] + r[j * p + k]) / size;
        if (likeness > most) {
          most = likeness;
          best = {j, i};
        }
      }
    }
  }
  return best;
}

std::string fingerprint_of(const std::vector<double>& numbers) {
  const std::string_view bytes(reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double));
  return fmt::format("{:016x}", checksum(bytes));
}

SelectCase case_of(std::string key, std::string label, RegressionTable table, std::vector<Index> causes) {
  SelectCase out;
  out.key = std::move(key);
  out.label = std::move(label);
  out.causes = std::move(causes);
  out.fingerprint = {{"rows", table.y.size()},
                     {"columns", table.names.size()},
                     {"x", fingerprint_of(table.x)},
                     {"y", fingerprint_of(table.y)}};
  table.source = out.key;
  out.problem = regression_problem(std::move(table), Scaling::standard, {});
  return out;
}

using Arrays = std::map<std::string, NumberArray, std::less<>>;

Arrays read_arrays(const std::string& path) {
  const std::string content = read_file(path);
  const ZipReader zip(content, path);
  Arrays out;
  for (const ZipReader::Entry& entry : zip.entries()) {
    if (!entry.name.ends_with(".npy")) continue;
    const std::string within = fmt::format("{}, {}", path, quote(entry.name));
    const std::string bytes = zip.unpack(entry);
    out[std::string(entry.name.substr(0, entry.name.size() - 4))] = numbers_of(parse_npy(bytes, within), within);
  }
  return out;
}

const NumberArray* find(const Arrays& arrays, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const auto found = arrays.find(name);
    if (found != arrays.end()) return &found->second;
  }
  return nullptr;
}

std::optional<double> single(const NumberArray* array) {
  return array != nullptr && array->values.size() == 1 ? std::optional(array->values[0]) : std::nullopt;
}

/// Numbers that are not zero, of a column of a matrix.
std::vector<Index> causes_in(const NumberArray* coefficients, std::size_t column, std::size_t variables) {
  std::vector<Index> out;
  if (coefficients == nullptr || variables == 0 || coefficients->values.size() % variables != 0) return out;
  const std::size_t columns = coefficients->values.size() / variables;
  if (column >= columns) return out;
  for (std::size_t j = 0; j < variables; ++j) {
    if (coefficients->values[j * columns + column] != 0.0) out.push_back(static_cast<Index>(j));
  }
  return out;
}

/// Names of files become names of parts: letters, digits and '-'.
std::string key_of(const std::filesystem::path& path) {
  std::string key = path.stem().string();
  for (char& c : key) {
    const bool fits = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!fits) c = '-';
  }
  return key;
}

std::vector<std::string> numbered_names(std::size_t count) {
  std::vector<std::string> out;
  for (std::size_t j = 0; j < count; ++j) out.push_back(fmt::format("x[{}]", j));
  return out;
}

void add_tables(const Arrays& arrays, const std::filesystem::path& path, std::vector<SelectCase>& out) {
  const NumberArray& x = *find(arrays, {"X"});
  const NumberArray& y = *find(arrays, {"Y", "y"});
  const std::size_t n = x.shape.size() == 2 ? x.shape[0] : 0;
  if (n == 0 || y.shape.empty() || y.shape[0] != n) {
    throw InputError(fmt::format("{}: found X of shape {} and Y of shape {}, expected a matrix and as many rows",
                                 path.string(), shape_text(x.shape), shape_text(y.shape)));
  }
  const std::size_t p = x.shape[1];
  const std::size_t traits = y.values.size() / n;
  for (std::size_t trait = 0; trait < std::min(traits, kMostTraits); ++trait) {
    RegressionTable table;
    table.names = numbered_names(p);
    table.x.resize(n * p);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < p; ++j) table.x[j * n + i] = x.values[i * p + j];
      table.y.push_back(y.values[i * traits + trait]);
    }
    const std::string number = traits > 1 ? fmt::format("-{}", trait + 1) : "";
    SelectCase one =
        case_of(key_of(path) + number, path.stem().string() + (traits > 1 ? fmt::format(", {}", trait + 1) : ""),
                std::move(table), causes_in(find(arrays, {"true_coef", "b"}), trait, p));
    one.about = fmt::format("{} rows and {} columns of {}", n, p, path.filename().string());
    out.push_back(std::move(one));
  }
}

void add_products(const Arrays& arrays, const std::filesystem::path& path, std::vector<SelectCase>& out) {
  CrossProductTable table;
  table.xty = find(arrays, {"Xty"})->values;
  table.names = numbered_names(table.xty.size());
  table.xtx.dense = find(arrays, {"XtX"})->values;
  table.xtx.source = path.string() + ", XtX";
  table.yty = single(find(arrays, {"yty"})).value_or(0.0);
  table.n = single(find(arrays, {"n"})).value_or(0.0);
  SelectCase one;
  one.key = key_of(path);
  one.label = path.stem().string();
  one.causes = causes_in(find(arrays, {"true_coef", "b"}), 0, table.names.size());
  one.about = fmt::format("X'X, X'y and y'y of {} rows and {} columns of {}", plain(table.n), table.names.size(),
                          path.filename().string());
  one.fingerprint = {{"n", table.n}, {"xty", fingerprint_of(table.xty)}, {"xtx", fingerprint_of(table.xtx.dense)}};
  one.problem = cross_product_problem(std::move(table), {});
  out.push_back(std::move(one));
}

void add_scores(const Arrays& arrays, const std::filesystem::path& path, std::vector<SelectCase>& out) {
  SummaryTable table;
  table.z = find(arrays, {"z"})->values;
  table.names = numbered_names(table.z.size());
  table.n = single(find(arrays, {"n"}));
  table.source = path.string() + ", z";
  SymmetricMatrix r;
  r.dense = find(arrays, {"R", "LD", "ld", "ldref"})->values;
  r.source = path.string() + ", R";
  SelectCase one;
  one.key = key_of(path);
  one.label = path.stem().string();
  one.causes = causes_in(find(arrays, {"true_coef", "b"}), 0, table.names.size());
  one.about = fmt::format("{} z scores and their correlations of {}", table.z.size(), path.filename().string());
  one.fingerprint = {{"z", fingerprint_of(table.z)}, {"r", fingerprint_of(r.dense)}, {"n", table.n.value_or(0.0)}};
  one.problem = summary_problem(std::move(table), std::move(r), {});
  out.push_back(std::move(one));
}

}  // namespace

std::vector<SelectCase> simulate_select_cases(Effort effort, std::uint64_t seed) {
  const bool quick = effort == Effort::quick;
  std::vector<SelectCase> out;
  {
    Rng rng = make_rng(seed, Stream::drawn_parameters, 0x5e1ec700);
    const std::size_t n = quick ? 400 : 5000;
    const Index p = quick ? 50 : 200;
    std::vector<double> x = genotypes(n, p, rng);
    const Effects effects{masked_causes(x, n), quick ? 0.3 : 0.08};
    out.push_back(case_of("masked", "masked", table_of(std::move(x), n, effects, rng), effects.causes));
    out.back().about = fmt::format(
        "{} variants of {} people; the sum of the two causes resembles a third variant more than each of them does", p,
        n);
  }
  {
    Rng rng = make_rng(seed, Stream::drawn_parameters, 0x5e1ec701);
    const std::size_t n = quick ? 200 : 600;
    const Index p = quick ? 60 : 1000;
    std::vector<double> x = genotypes(n, p, rng);
    const Effects effects{{p / 6, p / 2, p - p / 5}, quick ? 0.5 : 0.3};
    out.push_back(case_of("locus", "locus", table_of(std::move(x), n, effects, rng), effects.causes));
    out.back().about = fmt::format("{} variants of {} people, three causes", p, n);
  }
  {
    Rng rng = make_rng(seed, Stream::drawn_parameters, 0x5e1ec702);
    const std::size_t n = quick ? 100 : 500;
    const Index p = quick ? 40 : 500;
    std::vector<double> x = autoregressive(n, p, 0.8, rng);
    Effects effects{{}, quick ? 0.5 : 0.25};
    const Index count = quick ? 4 : 12;
    for (Index k = 0; k < count; ++k) effects.causes.push_back((2 * k + 1) * p / (2 * count));
    out.push_back(case_of("regression", "regression", table_of(std::move(x), n, effects, rng), effects.causes));
    out.back().about =
        fmt::format("{} columns of {} rows, neighbours correlated by 0.8, {} causes", p, n, effects.causes.size());
  }
  return out;
}

std::vector<SelectCase> read_select_cases(const std::string& directory) {
  std::error_code failed;
  std::vector<std::filesystem::path> paths;
  for (const auto& file : std::filesystem::directory_iterator(directory, failed)) {
    if (file.path().extension() == ".npz") paths.push_back(file.path());
  }
  if (failed) throw InputError(fmt::format("--data: cannot read the directory {}: {}", directory, failed.message()));
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) throw InputError(fmt::format("--data: found no .npz files in {}, expected some", directory));
  std::vector<SelectCase> out;
  for (const std::filesystem::path& path : paths) {
    const Arrays arrays = read_arrays(path.string());
    const auto has = [&](std::initializer_list<std::string_view> names) { return find(arrays, names) != nullptr; };
    if (has({"X"}) && has({"Y", "y"})) {
      add_tables(arrays, path, out);
    } else if (has({"XtX"}) && has({"Xty"}) && has({"yty"}) && has({"n"})) {
      add_products(arrays, path, out);
    } else if (has({"z"}) && has({"R", "LD", "ld", "ldref"})) {
      add_scores(arrays, path, out);
    } else {
      std::vector<std::string> names;
      for (const auto& [name, array] : arrays) names.push_back(name);
      throw InputError(fmt::format("{}: found the arrays {}, expected X and Y, or XtX, Xty, yty and n, or z and R",
                                   path.string(),
                                   names.empty() ? "(none)" : fmt::format("{}", fmt::join(names, ", "))));
    }
  }
  std::map<std::string, int> keys;
  for (const SelectCase& one : out) {
    if (++keys[one.key] > 1) {
      throw InputError(
          fmt::format("--data: found two files named {} but for punctuation, expected names that differ", one.key));
    }
  }
  return out;
}

}  // namespace poise::reproduction
