/// Specs, images, matrices and edge lists of Ising models: what is read, what is drawn at random, what is refused.
#include <poise/target/ising_model.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <span>
#include <tuple>

#include <fmt/format.h>

#include <poise/report/png.hpp>
#include <poise/rng.hpp>

namespace poise {
namespace {

constexpr std::int64_t kMaxSide = 65535;
constexpr std::int64_t kMaxSites = std::int64_t{1} << 28;
constexpr std::int64_t kMaxVariables = 100'000'000;
constexpr std::int64_t kMaxEdges = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMaxFileBytes = std::size_t{1} << 31;
/// Fields and couplings stay below this, so that log p of any state stays finite.
constexpr double kLargest = 1e100;
/// Chains have small streams; the noise of a field must never coincide with a chain of the same seed.
constexpr std::uint64_t kFieldStream = std::numeric_limits<std::uint64_t>::max() - 1;

// ---- text files

[[noreturn]] void fail_at(std::string_view name, std::size_t line, const std::string& what) {
  throw InputError(fmt::format("{}, line {}: {}", name, line, what));
}

std::string read_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw InputError(fmt::format("{}: found a directory, expected a file", path));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file) throw InputError(fmt::format("{}: cannot be opened, expected a file that can be read", path));
  std::string content;
  std::vector<char> buffer(1 << 16);
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || file.gcount() > 0) {
    content.append(buffer.data(), static_cast<std::size_t>(file.gcount()));
    if (content.size() > kMaxFileBytes) throw InputError(fmt::format("{}: too long, expected at most 2 GiB", path));
  }
  if (file.bad()) throw InputError(fmt::format("{}: reading failed, expected a file that can be read", path));
  return content;
}

/// The lines of a text that hold something besides blanks and comments, cut into words.
class Lines {
 public:
  explicit Lines(std::string_view content) : rest_(content) {
    constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
    if (rest_.starts_with(byte_order_mark)) rest_.remove_prefix(byte_order_mark.size());
  }

  bool next() {
    words.clear();
    while (words.empty() && !rest_.empty()) {
      ++number;
      const std::size_t end = std::min(rest_.find('\n'), rest_.size());
      const std::string_view line = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      split(line.substr(0, line.find('#')));
    }
    return !words.empty();
  }

  std::size_t number = 0;               ///< of the present line, from 1
  std::vector<std::string_view> words;  ///< of the present line

 private:
  static constexpr std::string_view kBlanks = " \t\r\v\f";
  static constexpr std::string_view kBlanksAndComma = " \t\r\v\f,";

  /// Words end at blanks or at one comma; nothing between two commas, or after the last, is an empty word.
  void split(std::string_view line) {
    bool after_comma = false;
    for (std::size_t at = 0;;) {
      at = line.find_first_not_of(kBlanks, at);
      if (at == std::string_view::npos) break;
      const std::size_t end = std::min(line.find_first_of(kBlanksAndComma, at), line.size());
      words.push_back(line.substr(at, end - at));
      at = line.find_first_not_of(kBlanks, end);
      after_comma = at != std::string_view::npos && line[at] == ',';
      if (after_comma) ++at;
    }
    if (after_comma) words.emplace_back();
  }

  std::string_view rest_;
};

double real_at(std::string_view word, std::string_view name, std::size_t line) {
  const std::optional<double> value = parse_real(word);
  if (!value) fail_at(name, line, fmt::format("found {}, expected a finite number", quote(word)));
  if (std::abs(*value) > kLargest) {
    fail_at(name, line, fmt::format("found {}, expected a number from {} to {}", quote(word), -kLargest, kLargest));
  }
  return *value;
}

/// Where an integer may lie and what it is called in a message.
struct Expected {
  std::string_view noun;
  std::int64_t min;
  std::int64_t max;
};

std::int64_t integer_at(std::string_view word, const Expected& one, std::string_view name, std::size_t line) {
  const std::optional<std::int64_t> value = parse_integer(word);
  if (value && *value >= one.min && *value <= one.max) return *value;
  fail_at(name, line, fmt::format("found {}, expected {} from {} to {}", quote(word), one.noun, one.min, one.max));
}

/// The pair of lines that give the same edge, the earliest such repetition in the file.
void refuse_repeated(const std::vector<Edge>& edges, const std::vector<std::size_t>& lines, std::string_view name) {
  std::vector<std::pair<std::uint64_t, std::size_t>> keyed(edges.size());  // both ends in one number, place in the list
  for (std::size_t e = 0; e < edges.size(); ++e) {
    const auto [low, high] = std::minmax(edges[e].i, edges[e].j);
    keyed[e] = {std::uint64_t{low} << 32 | high, e};
  }
  std::sort(keyed.begin(), keyed.end());
  std::optional<std::pair<std::size_t, std::size_t>> repeated;
  for (std::size_t k = 1; k < keyed.size(); ++k) {
    const bool same = keyed[k].first == keyed[k - 1].first;
    if (same && (!repeated || keyed[k].second < repeated->second)) repeated = {keyed[k - 1].second, keyed[k].second};
  }
  if (!repeated) return;
  const Edge& edge = edges[repeated->second];
  fail_at(name, lines[repeated->second],
          fmt::format("found the edge {} {} of line {} again, expected each edge once, in either direction", edge.i + 1,
                      edge.j + 1, lines[repeated->first]));
}

}  // namespace

Matrix parse_matrix(std::string_view content, std::string_view name) {
  Matrix matrix;
  std::size_t columns = 0;
  std::size_t rows = 0;
  std::size_t first_line = 0;
  for (Lines lines(content); lines.next(); ++rows) {
    if (rows == 0) std::tie(columns, first_line) = std::pair{lines.words.size(), lines.number};
    for (const std::string_view word : lines.words) matrix.values.push_back(real_at(word, name, lines.number));
    if (lines.words.size() != columns) {
      const std::size_t found = lines.words.size();
      fail_at(name, lines.number,
              fmt::format("found {} numbers, expected {} as in line {}", found, columns, first_line));
    }
  }
  if (rows == 0) throw InputError(fmt::format("{}: found no numbers, expected rows of numbers", name));
  matrix.rows = static_cast<Index>(rows);
  matrix.columns = static_cast<Index>(columns);
  return matrix;
}

std::vector<double> parse_numbers(std::string_view content, std::string_view name) {
  std::vector<double> values;
  for (Lines lines(content); lines.next();) {
    for (const std::string_view word : lines.words) values.push_back(real_at(word, name, lines.number));
  }
  return values;
}

EdgeList parse_edges(std::string_view content, std::string_view name, double default_coupling) {
  EdgeList graph;
  std::optional<std::size_t> header_line;
  std::size_t declared = 0;
  std::vector<std::size_t> edge_lines;
  for (Lines lines(content); lines.next();) {
    const auto& words = lines.words;
    if (words[0] == "c") continue;
    if (!header_line) {
      if (words.size() != 2) {
        fail_at(name, lines.number, fmt::format("found {} words, expected a line 'variables edges'", words.size()));
      }
      header_line = lines.number;
      graph.variables =
          static_cast<Index>(integer_at(words[0], {"a number of variables", 1, kMaxVariables}, name, lines.number));
      declared =
          static_cast<std::size_t>(integer_at(words[1], {"a number of edges", 0, kMaxEdges}, name, lines.number));
      const std::size_t possible = content.size() / 4 + 1;  // "1 2\n" is the shortest edge
      graph.edges.reserve(std::min(declared, possible));
      edge_lines.reserve(std::min(declared, possible));
      continue;
    }
    if (graph.edges.size() == declared) {
      fail_at(name, lines.number,
              fmt::format("found a line after the last edge, expected {} edges as line {} declares", declared,
                          *header_line));
    }
    if (words.size() != 2 && words.size() != 3) {
      fail_at(name, lines.number, fmt::format("found {} words, expected 'i j' or 'i j coupling'", words.size()));
    }
    const Expected range{"the number of a variable,", 1, graph.variables};
    const std::int64_t i = integer_at(words[0], range, name, lines.number);
    const std::int64_t j = integer_at(words[1], range, name, lines.number);
    if (i == j) fail_at(name, lines.number, fmt::format("found an edge from {} to itself, expected two variables", i));
    const double coupling = words.size() == 3 ? real_at(words[2], name, lines.number) : default_coupling;
    graph.edges.push_back({static_cast<Index>(i - 1), static_cast<Index>(j - 1), coupling});
    edge_lines.push_back(lines.number);
  }
  if (!header_line) throw InputError(fmt::format("{}: found no numbers, expected a line 'variables edges'", name));
  if (graph.edges.size() < declared) {
    throw InputError(fmt::format("{}: found {} edges, expected {} as line {} declares", name, graph.edges.size(),
                                 declared, *header_line));
  }
  refuse_repeated(graph.edges, edge_lines, name);
  return graph;
}

namespace {

// ---- settings

struct Settings {
  std::optional<std::pair<Index, Index>> size;  ///< rows and columns, when given
  double lambda = 1;
  std::optional<double> mu;  ///< when given, also by a case
  std::optional<double> sigma;
  std::uint64_t seed = 1;
  bool torus = true;
  bool gaussian = false;
  bool shapes = false;
  std::string graph;  ///< file name; empty for a lattice
};

const std::vector<std::string>& known_keys() {
  static const std::vector<std::string> keys = {"size",     "lambda", "mu",    "sigma", "seed",
                                                "boundary", "field",  "image", "case",  "graph"};
  return keys;
}

std::optional<std::pair<Index, Index>> read_size(SpecReader& reader) {
  if (!reader.has("size")) return std::nullopt;
  const std::string text = reader.text("size", "");
  const std::size_t cross = text.find('x');
  const auto rows = parse_integer(std::string_view(text).substr(0, cross));
  const auto columns = cross == std::string::npos ? rows : parse_integer(std::string_view(text).substr(cross + 1));
  const auto valid = [](const auto& side) { return side && *side >= 1 && *side <= kMaxSide; };
  if (!valid(rows) || !valid(columns)) {
    reader.reject("size", fmt::format("N or ROWSxCOLUMNS, each an integer from 1 to {}", kMaxSide));
    return std::nullopt;
  }
  if (*rows * *columns > kMaxSites) reader.reject("size", fmt::format("at most {} sites", kMaxSites));
  return std::pair{static_cast<Index>(*rows), static_cast<Index>(*columns)};
}

/// Keys that would be ignored beside something else are refused: the user meant something by them.
void refuse_keys(SpecReader& reader, const std::vector<std::string>& keys, std::string_view reason) {
  for (const std::string& key : keys) {
    if (reader.has(key)) reader.problem(fmt::format("key '{}' in model 'ising' does not go with {}", key, reason));
  }
}

Settings read_settings(SpecReader& reader, const IsingFiles& files) {
  Settings settings;
  settings.size = read_size(reader);
  if (const std::int64_t number = reader.integer("case", 0, 1, 4); number > 0) {
    settings.lambda = number <= 2 ? 0 : 1;
    settings.mu = number % 2 == 1 ? 1 : 3;
    settings.sigma = 3;
  }
  settings.lambda = reader.real("lambda", settings.lambda, -kLargest, kLargest);
  if (reader.has("mu")) settings.mu = reader.real("mu", 0, -kLargest, kLargest);
  if (reader.has("sigma")) settings.sigma = reader.real("sigma", 1, 0, kLargest);
  settings.seed = static_cast<std::uint64_t>(reader.integer("seed", 1, 0));
  settings.torus = reader.choice("boundary", "torus", {"torus", "open"}) == "torus";
  settings.gaussian = reader.choice("field", "uniform", {"uniform", "gaussian"}) == "gaussian";
  settings.shapes = reader.choice("image", "square", {"square", "shapes"}) == "shapes";
  settings.graph = reader.text("graph", "");
  if (!settings.graph.empty()) {
    refuse_keys(reader, {"size", "boundary", "image", "case"}, "'graph', which has no lattice");
  }
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

std::vector<std::int8_t> draw_truth(Index rows, Index columns, bool shapes) {
  std::vector<std::int8_t> truth;
  truth.reserve(std::size_t{rows} * columns);
  const double side = std::min(rows, columns);  // the drawing keeps its proportions, in the middle of an oblong lattice
  for (Index r = 0; r < rows; ++r) {
    for (Index c = 0; c < columns; ++c) {
      const double x = 0.5 + (c + 0.5 - 0.5 * columns) / side;
      const double y = 0.5 + (r + 0.5 - 0.5 * rows) / side;
      const bool inside = shapes ? in_shapes(x, y) : in_middle(r, rows) && in_middle(c, columns);
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
  if (mu != 0 && model.is_lattice()) model.truth = draw_truth(model.rows, model.columns, settings.shapes);
  model.observed.resize(model.variables);
  if (mu != 0 || sigma != 0) {
    Rng rng(settings.seed, kFieldStream);
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
  if (settings.size && *settings.size != std::pair{model.rows, model.columns}) {
    throw InputError(fmt::format("{}: found {} rows of {}, expected {} rows of {} as key 'size' in model 'ising' says",
                                 path, rows, columns, settings.size->first, settings.size->second));
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
  if (!settings.graph.empty()) {
    throw InputError(fmt::format("{}: found an image, expected {} numbers as text, one for each variable of {}", path,
                                 model.variables, settings.graph));
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
  if (settings.graph.empty()) {
    Matrix matrix = parse_matrix(content, path);
    set_size(model, settings, matrix.rows, matrix.columns, path);
    model.field = std::move(matrix.values);
  } else {
    model.field = parse_numbers(content, path);
    if (model.field.size() != model.variables) {
      throw InputError(fmt::format("{}: found {} numbers, expected {}, one for each variable of {}", path,
                                   model.field.size(), model.variables, settings.graph));
    }
  }
  model.observed = model.field;
}

/// What makes a difference, in a fixed order; defaults that rarely change are left out.
std::string canonical_name(const Settings& settings, const IsingModel& model, bool random) {
  Spec spec{"ising", {}};
  const auto add = [&](const char* key, const auto& value) {
    spec.settings.emplace_back(key, fmt::format("{}", value));
  };
  if (!model.is_lattice()) {
    add("graph", settings.graph);
  } else if (model.rows == model.columns) {
    add("size", model.rows);
  } else {
    add("size", fmt::format("{}x{}", model.rows, model.columns));
  }
  add("lambda", settings.lambda);
  const double mu = settings.mu.value_or(0);
  const double sigma = settings.sigma.value_or(0);
  const bool plain = mu == 0 && sigma == 0;
  if (!plain) add("mu", mu);
  if (!plain) add("sigma", sigma);
  if (!plain && random) add("seed", settings.seed);
  if (model.is_lattice() && !settings.torus) add("boundary", "open");
  if (settings.gaussian) add("field", "gaussian");
  if (settings.shapes && mu != 0) add("image", "shapes");
  return spec.text();
}

}  // namespace

IsingModel make_ising(const Spec& spec, const IsingFiles& files) {
  SpecReader reader(spec, "model");
  Settings settings = read_settings(reader, files);
  IsingModel model;
  model.coupling = settings.lambda;
  model.torus = settings.torus && settings.graph.empty();
  if (!settings.graph.empty()) {
    EdgeList graph = parse_edges(read_file(settings.graph), settings.graph, settings.lambda);
    model.variables = graph.variables;
    model.edges = std::move(graph.edges);
  }
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
    if (settings.graph.empty()) {
      std::tie(model.rows, model.columns) = settings.size.value_or(std::pair<Index, Index>{30, 30});
      model.variables = model.rows * model.columns;
    }
    draw_field(settings, model);
  }
  model.name = canonical_name(settings, model, files.field_path.empty());
  return model;
}

}  // namespace poise
