/// Specs, images and fields of Ising models: what is read, what is drawn at random, what is refused.
#include "models/ising/ising_model.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <span>

#include <fmt/format.h>

#include <poise/extend/base/rng.hpp>
#include <poise/image.hpp>
#include "base/file.hpp"
#include "models/ising/ising_text.hpp"

namespace poise {
namespace {

// ---- settings

struct Settings {
  std::vector<Index> size;  ///< rows and columns, or more sides; empty where they were not given
  double coupling = 1;
  double beta = 1;
  std::optional<double> mu;  ///< when given, also by a case
  std::optional<double> sigma;
  std::uint64_t seed = 1;
  bool torus = true;
  bool gaussian = false;
  std::string image = "square";
  std::string graph;  ///< file name; empty for a lattice

  /// Of three dimensions and more.
  [[nodiscard]] bool is_grid() const { return size.size() > 2; }
};

const std::vector<std::string>& known_keys() {
  static const std::vector<std::string> keys = {"size", "coupling", "lambda", "beta",  "T",    "mu",   "sigma",
                                                "seed", "boundary", "field",  "image", "case", "graph"};
  return keys;
}

/// Keys that would be ignored beside something else are refused: the user meant something by them.
void refuse_keys(SpecReader& reader, const std::vector<std::string>& keys, std::string_view reason) {
  for (const std::string& key : keys) {
    if (reader.has(key)) reader.problem(fmt::format("key '{}' in model 'ising' does not go with {}", key, reason));
  }
}

Settings read_settings(SpecReader& reader, const IsingFiles& files) {
  Settings settings;
  settings.size = read_lattice_sides(reader, kMaxSites).value_or(std::vector<Index>());
  if (const std::int64_t number = reader.integer("case", 0, 1, 4); number > 0) {
    settings.coupling = number <= 2 ? 0 : 1;
    settings.mu = number % 2 == 1 ? 1 : 3;
    settings.sigma = 3;
  }
  const char* const name = reader.has("lambda") ? "lambda" : "coupling";
  if (reader.has("lambda") && reader.has("coupling")) {
    reader.problem("keys 'coupling' and 'lambda' in model 'ising' are the same: expected one of them");
  }
  settings.coupling = reader.real(name, settings.coupling, -kLargest, kLargest);
  settings.beta = read_beta(reader, 0.0, kLargest);
  if (reader.has("mu")) settings.mu = reader.real("mu", 0, -kLargest, kLargest);
  if (reader.has("sigma")) settings.sigma = reader.real("sigma", 1, 0, kLargest);
  settings.seed = static_cast<std::uint64_t>(reader.integer("seed", 1, 0));
  settings.torus = reader.choice("boundary", "torus", {"torus", "open"}) == "torus";
  settings.gaussian = reader.choice("field", "uniform", {"uniform", "gaussian"}) == "gaussian";
  settings.image = reader.choice("image", settings.image, {"square", "shapes", "disc"});
  settings.graph = reader.text("graph", "");
  if (!settings.graph.empty()) {
    refuse_keys(reader, {"size", "boundary", "image", "case"}, "'graph', which has no lattice");
  }
  if (settings.is_grid()) refuse_keys(reader, {"image", "case"}, "a lattice of more than two dimensions");
  if (!files.field_path.empty()) {
    const std::string file = fmt::format("the field file {}, in which nothing is random", files.field_path);
    refuse_keys(reader, {"seed", "field", "image"}, file);
  }
  if (settings.gaussian && settings.sigma.value_or(0) == 0) {
    reader.problem("key 'field' in model 'ising': 'gaussian' with sigma=0, expected a sigma greater than 0");
  }
  reader.finish(known_keys());
  return settings;
}

// ---- the true object

/// Central square: the sites whose centres lie between 7/30 and 23/30 of the side, in each dimension by itself.
bool in_middle(std::int64_t at, std::int64_t side) {
  const std::int64_t doubled = 30 * (2 * at + 1);
  return doubled >= 14 * side && doubled <= 46 * side;
}

/// A disc, a ring, a triangle and a slanted bar in the unit square; x to the right, y down.
bool in_shapes(double x, double y) {
  const bool disc = std::hypot(x - 0.27, y - 0.27) <= 0.18;
  const double from_ring = std::hypot(x - 0.73, y - 0.27);
  const bool ring = from_ring >= 0.09 && from_ring <= 0.19;
  const bool triangle = y <= 0.90 && y >= 0.54 && std::abs(x - 0.27) <= 0.55 * (y - 0.54);
  const double angle = -0.7;
  const double along = (x - 0.73) * std::cos(angle) + (y - 0.73) * std::sin(angle);
  const double across = (y - 0.73) * std::cos(angle) - (x - 0.73) * std::sin(angle);
  const bool bar = std::abs(along) <= 0.21 && std::abs(across) <= 0.07;
  return disc || ring || triangle || bar;
}

/// In the middle of the unit square, half of its area.
bool in_disc(double x, double y) { return std::hypot(x - 0.5, y - 0.5) < std::sqrt(0.5 / std::numbers::pi); }

std::vector<std::int8_t> draw_truth(Index rows, Index columns, std::string_view image) {
  std::vector<std::int8_t> truth;
  truth.reserve(std::size_t{rows} * columns);
  const double side = std::min(rows, columns);  // the drawing keeps its proportions, in the middle of an oblong lattice
  for (Index r = 0; r < rows; ++r) {
    for (Index c = 0; c < columns; ++c) {
      const double x = 0.5 + (c + 0.5 - 0.5 * columns) / side;
      const double y = 0.5 + (r + 0.5 - 0.5 * rows) / side;
      const bool inside = image == "shapes" ? in_shapes(x, y)
                          : image == "disc" ? in_disc(x, y)
                                            : in_middle(r, rows) && in_middle(c, columns);
      truth.push_back(inside ? 1 : -1);
    }
  }
  return truth;
}

// ---- fields

/// alpha = y mu / sigma^2, the field of the posterior of an image seen through Gaussian noise.
std::vector<double> posterior_field(const std::vector<double>& y, double mu, double sigma) {
  const double weight = mu / sigma / sigma;
  std::vector<double> field(y.size());
  for (std::size_t i = 0; i < y.size(); ++i) {
    field[i] = y[i] * weight;
    if (std::abs(field[i]) <= kLargest) continue;
    throw InputError(
        fmt::format("model 'ising': found a field of {} from mu={} and sigma={}, expected at most {} in size", field[i],
                    mu, sigma, kLargest));
  }
  return field;
}

void draw_field(const Settings& settings, IsingModel& model) {
  const double mu = settings.mu.value_or(0);
  const double sigma = settings.sigma.value_or(0);
  if (mu != 0 && model.is_lattice()) model.truth = draw_truth(model.rows, model.columns, settings.image);
  model.observed.resize(model.variables);
  if (mu != 0 || sigma != 0) {
    Rng rng = make_rng(settings.seed, Stream::field);
    for (Index i = 0; i < model.variables; ++i) {
      const double signal = model.truth.empty() || model.truth[i] > 0 ? mu : -mu;
      const double noise = settings.gaussian ? rng.normal() : 2 * rng.uniform() - 1;
      model.observed[i] = signal + sigma * noise;
    }
  }
  model.field = settings.gaussian ? posterior_field(model.observed, mu, sigma) : model.observed;
}

void set_size(IsingModel& model, const Settings& settings, std::size_t rows, std::size_t columns,
              const std::string& path) {
  const auto valid = [](std::size_t side) { return side >= 1 && side <= static_cast<std::size_t>(kMaxSide); };
  if (!valid(rows) || !valid(columns) || rows * columns > static_cast<std::size_t>(kMaxSites)) {
    throw InputError(fmt::format("{}: found {} rows of {}, expected 1 to {} of each and at most {} sites", path, rows,
                                 columns, kMaxSide, kMaxSites));
  }
  model.rows = static_cast<Index>(rows);
  model.columns = static_cast<Index>(columns);
  model.variables = model.rows * model.columns;
  if (!settings.size.empty() && settings.size != std::vector{model.rows, model.columns}) {
    throw InputError(fmt::format("{}: found {} rows of {}, expected {} rows of {} as key 'size' in model 'ising' says",
                                 path, rows, columns, settings.size[0], settings.size[1]));
  }
}

bool is_image(std::string_view content) {
  const bool netpbm = content.size() > 2 && content[0] == 'P' && content[1] >= '1' && content[1] <= '7';
  return netpbm || content.starts_with("\x89PNG");
}

/// Brightness in [-1, 1], black to white; of colours the luminance (Rec. 601), not rounded to 8 bits.
std::vector<double> brightness(const Image& image) {
  std::vector<double> y(image.width * image.height);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const std::uint8_t* pixel = &image.pixels[i * image.channels];
    const double gray = image.channels < 3 ? pixel[0] : (299 * pixel[0] + 587 * pixel[1] + 114 * pixel[2]) / 1000.0;
    y[i] = 2 * gray / 255 - 1;
  }
  return y;
}

/// Field from a picture; `settings` learn the defaults that hold for pictures.
void read_image_field(const std::string& path, std::string_view content, Settings& settings, IsingModel& model) {
  if (!settings.graph.empty() || settings.is_grid()) {
    throw InputError(fmt::format("{}: found an image, expected {} numbers as text, one for each variable of {}", path,
                                 model.variables, settings.is_grid() ? "the lattice" : settings.graph));
  }
  settings.mu = settings.mu.value_or(1);
  settings.sigma = settings.sigma.value_or(1);
  if (*settings.sigma == 0) {
    throw InputError(fmt::format("key 'sigma' in model 'ising': found 0, expected more than 0 with image {}", path));
  }
  const Image image = parse_image(std::as_bytes(std::span(content)), path);
  set_size(model, settings, image.height, image.width, path);
  model.observed = brightness(image);
  model.field = posterior_field(model.observed, *settings.mu, *settings.sigma);
}

void read_number_field(const std::string& path, std::string_view content, const Settings& settings, IsingModel& model) {
  if (settings.graph.empty() && !settings.is_grid()) {
    Matrix matrix = parse_matrix(content, path);
    set_size(model, settings, matrix.rows, matrix.columns, path);
    model.field = std::move(matrix.values);
  } else {
    model.field = parse_numbers(content, path);
    if (model.field.size() != model.variables) {
      throw InputError(fmt::format("{}: found {} numbers, expected {}, one for each variable of {}", path,
                                   model.field.size(), model.variables,
                                   settings.is_grid() ? "the lattice" : settings.graph));
    }
  }
  model.observed = model.field;
}

/// Coupling and field times beta.
void take_beta(double beta, IsingModel& model) {
  if (beta == 1.0) return;
  const auto scale = [&](double& value) {
    value *= beta;
    if (std::abs(value) <= kLargest) return;
    throw InputError(
        fmt::format("model 'ising': found a field or coupling of {} times beta={}, expected at most {} in size",
                    value / beta, beta, kLargest));
  };
  scale(model.coupling);
  for (Edge& edge : model.edges) scale(edge.coupling);
  for (double& field : model.field) scale(field);
}

/// What makes a difference, in a fixed order; defaults that rarely change are left out.
std::string canonical_name(const Settings& settings, const IsingModel& model, bool random) {
  Spec spec{"ising", {}};
  const auto add = [&](const char* key, const auto& value) {
    spec.settings.emplace_back(key, fmt::format("{}", value));
  };
  if (settings.is_grid()) {
    add("size", fmt::format("{}", fmt::join(settings.size, "x")));
  } else if (!model.is_lattice()) {
    add("graph", settings.graph);
  } else if (model.rows == model.columns) {
    add("size", model.rows);
  } else {
    add("size", fmt::format("{}x{}", model.rows, model.columns));
  }
  add("coupling", settings.coupling);
  if (settings.beta != 1.0) add("beta", settings.beta);
  const double mu = settings.mu.value_or(0);
  const double sigma = settings.sigma.value_or(0);
  const bool plain = mu == 0 && sigma == 0;
  if (!plain) add("mu", mu);
  if (!plain) add("sigma", sigma);
  if (!plain && random) add("seed", settings.seed);
  if (settings.graph.empty() && !settings.torus) add("boundary", "open");
  if (settings.gaussian) add("field", "gaussian");
  if (settings.image != "square" && mu != 0) add("image", settings.image);
  return spec.text();
}

}  // namespace

IsingModel make_ising(const Spec& spec, const IsingFiles& files) {
  SpecReader reader(spec, "model");
  Settings settings = read_settings(reader, files);
  IsingModel model;
  model.coupling = settings.coupling;
  model.torus = settings.torus && settings.graph.empty();
  if (!settings.graph.empty()) {
    EdgeList graph = parse_edges(read_file(settings.graph), settings.graph, settings.coupling);
    model.variables = graph.variables;
    model.edges = std::move(graph.edges);
  }
  if (settings.is_grid()) set_grid({settings.size, settings.torus}, model);
  if (!files.field_path.empty()) {
    const std::string content = read_file(files.field_path);
    if (is_image(content)) {
      read_image_field(files.field_path, content, settings, model);
    } else {
      refuse_keys(reader, {"mu", "sigma", "case"}, fmt::format("{}, which holds the field itself", files.field_path));
      reader.finish(known_keys());
      read_number_field(files.field_path, content, settings, model);
    }
  } else {
    if (settings.graph.empty() && !settings.is_grid()) {
      model.rows = settings.size.empty() ? 30 : settings.size[0];
      model.columns = settings.size.empty() ? 30 : settings.size[1];
      model.variables = model.rows * model.columns;
    }
    draw_field(settings, model);
  }
  take_beta(settings.beta, model);
  model.name = canonical_name(settings, model, files.field_path.empty());
  return model;
}

void set_grid(const GridShape& shape, IsingModel& ising) {
  ising.sides = shape.sides;
  ising.torus = shape.torus;
  ising.variables = shape.num_sites();
  shape.for_each_edge([&](Index i, Index j, bool doubled) {
    if (!doubled || i < j) ising.edges.push_back({i, j, doubled ? 2.0 * ising.coupling : ising.coupling});
  });
}

void list_lattice_edges(IsingModel& ising) {
  const LatticeShape shape{ising.rows, ising.columns, ising.torus};
  for (Index i = 0; i < ising.rows * ising.columns; ++i) {
    shape.for_each_edge_from(i, [&](Index j, bool doubled) {
      if (!doubled || i < j) ising.edges.push_back({i, j, doubled ? 2.0 * ising.coupling : ising.coupling});
    });
  }
}

}  // namespace poise
