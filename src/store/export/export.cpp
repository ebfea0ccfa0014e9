/// From a store, batch by batch, to one file.
#include "store/export/export.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <functional>
#include <limits>
#include <set>
#include <span>

#include <fmt/format.h>

#include "base/file.hpp"
#include "base/npz.hpp"
#include "store/export/array_file.hpp"
#include "store/run_file.hpp"

namespace poise {

namespace {

using exported::Array;
using exported::Attributes;
using exported::NpzFile;
using exported::OutputFile;

constexpr std::size_t kBatchBytes = std::size_t{1} << 26;
constexpr std::size_t kChunkDraws = 256;  // a batch of whole chunks unpacks none of them twice

enum class Format { netcdf, npz, csv };

/// Throws an InputError for an ending that says no format.
Format format_of(const std::string& file) {
  const std::string ending = std::filesystem::path(file).extension().string();
  if (same_letters(ending, ".nc")) return Format::netcdf;
  if (same_letters(ending, ".npz")) return Format::npz;
  if (same_letters(ending, ".csv")) return Format::csv;
  throw InputError(fmt::format("found {}, expected a name that ends in .nc, .npz or .csv", file));
}

/// What is known of a run before its draws are read. Draws that come later are left out.
struct Run {
  std::string path;
  StoredRun head;
  std::size_t chains;
  std::size_t draws;

  explicit Run(const std::string& where)
      : path(where),
        head(read_run(where, {.draws = false, .series = false, .most_draws = 0})),
        chains(head.trace.chains),
        draws(head.trace.all_draws()) {
    if (chains * draws == 0) throw InputError(fmt::format("{} holds no draws yet.", path));
  }

  [[nodiscard]] std::size_t variables() const { return head.has_states ? head.layout.variables : 0; }

  /// Gives all draws in batches, with the number of the first.
  void for_each_batch(const std::function<void(const Trace&, std::size_t)>& visit) const {
    const std::size_t bytes = chains * (variables() + (head.trace.monitor_names.size() + 2) * sizeof(double));
    std::size_t most = std::max<std::size_t>(1, kBatchBytes / bytes);
    if (most > kChunkDraws) most -= most % kChunkDraws;
    for (std::size_t first = 0; first < draws; first += most) {
      const std::size_t count = std::min(most, draws - first);
      const Trace trace = read_run(path, {.first_draw = first, .most_draws = count}).trace;
      if (trace.chains != chains || trace.draws != count || trace.monitors.size() != head.trace.monitor_names.size()) {
        throw InputError(fmt::format("{} was changed by another program just now.", path));
      }
      visit(trace, first);
    }
  }
};

/// The values of a batch that belong to an array.
struct Source {
  enum class Kind { states, monitor, acceptance_rate, n_steps, constant };
  Kind kind = Kind::constant;
  std::size_t monitor = 0;
};

/// Names that files can have: no slash, no control characters, each once.
class Names {
 public:
  std::string operator()(std::string name) {
    for (char& c : name) {
      if (c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '_';
    }
    while (!name.empty() && name.back() == ' ') name.back() = '_';
    std::string unique = name;
    for (int k = 2; !seen_.insert(unique).second; ++k) unique = fmt::format("{}_{}", name, k);
    return unique;
  }

 private:
  std::set<std::string> seen_;
};

struct Plan {
  std::vector<Array> arrays;
  std::vector<Source> sources;

  Array& add(Array array, Source source) {
    arrays.push_back(std::move(array));
    sources.push_back(source);
    return arrays.back();
  }
};

/// UTF-8 to the four bytes of each character that NumPy keeps; what is no UTF-8 becomes a question mark.
std::string utf32(std::string_view text) {
  std::string out;
  for (std::size_t k = 0; k < text.size();) {
    const auto byte = static_cast<unsigned char>(text[k]);
    const std::size_t length = byte < 0x80 ? 1 : byte >> 5U == 6 ? 2 : byte >> 4U == 14 ? 3 : byte >> 3U == 30 ? 4 : 0;
    bool whole = length > 0 && k + length <= text.size();
    std::uint32_t point = length == 1 ? byte : length == 0 ? 0 : byte & (0x7fU >> length);
    for (std::size_t next = 1; whole && next < length; ++next) {
      const auto more = static_cast<unsigned char>(text[k + next]);
      whole = more >> 6U == 2;
      point = point << 6U | (more & 0x3fU);
    }
    out += little_endian(whole ? point : '?', 4);
    k += whole ? length : 1;
  }
  return out;
}

void add_texts(Plan& plan, std::string name, const std::string& dimension, std::vector<std::string> texts) {
  Array array{.name = std::move(name), .type = Array::Type::text, .texts = std::move(texts)};
  if (!dimension.empty()) {
    array.shape = {array.texts.size()};
    array.dimensions = {dimension};
  }
  for (const std::string& text : array.texts) array.text_bytes = std::max(array.text_bytes, text.size());
  array.text_bytes = std::max<std::size_t>(array.text_bytes, 4);
  plan.add(std::move(array), {});
}

/// Groups become prefixes of names in NetCDF; NumPy's arrays are few and need none.
Plan plan_of(const Run& run, bool prefixed) {
  Plan plan;
  Names names;
  const Trace& trace = run.head.trace;
  const VariableLayout& layout = run.head.layout;
  const std::string of_posterior = prefixed ? "posterior_" : "";
  const std::string of_sample = prefixed ? "sample_stats_" : "";
  const auto series = [&](const std::string& name, const std::string& full, Array::Type type, Source source) {
    Array& array = plan.add(
        {.name = names(full), .type = type, .shape = {run.chains, run.draws}, .dimensions = {"chain", "draw"}}, source);
    if (!full.ends_with(name) || !array.name.ends_with(name)) array.long_name = name;
  };
  if (prefixed) {
    for (const auto& [name, count] : {std::pair("chain", run.chains), std::pair("draw", run.draws)}) {
      Array array{.name = names(name), .type = Array::Type::int32, .shape = {count}, .dimensions = {name}};
      for (std::size_t k = 0; k < count; ++k) array.whole.push_back(static_cast<std::int32_t>(k));
      plan.add(std::move(array), {});
    }
  }
  if (run.variables() > 0) {
    Array x{.name = names(of_posterior + "x"), .type = Array::Type::int8, .shape = {run.chains, run.draws}};
    x.dimensions = {"chain", "draw"};
    if (layout.is_lattice()) {
      x.shape.insert(x.shape.end(), {layout.rows, layout.columns});
      x.dimensions.insert(x.dimensions.end(), {"row", "column"});
    } else {
      x.shape.push_back(layout.variables);
      x.dimensions.emplace_back("x_variable");
    }
    plan.add(std::move(x), {Source::Kind::states});
    if (!layout.names.empty() && !layout.is_lattice()) {
      add_texts(plan, names("x_variable"), "x_variable", layout.names);
    }
  }
  series("lp", of_sample + "lp", Array::Type::float64, {Source::Kind::monitor, 0});
  for (std::size_t k = 1; k < trace.monitor_names.size(); ++k) {
    series(trace.monitor_names[k], of_posterior + trace.monitor_names[k], Array::Type::float64,
           {Source::Kind::monitor, k});
  }
  series("acceptance_rate", of_sample + "acceptance_rate", Array::Type::float64, {Source::Kind::acceptance_rate});
  series("n_steps", of_sample + "n_steps", Array::Type::int64, {Source::Kind::n_steps});
  return plan;
}

Attributes attributes_of(const Run& run) {
  const auto text = [](const nlohmann::json& json) {
    return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  };
  Attributes all = {{"inference_library", "poise"},
                    {"inference_library_version", POISE_VERSION},
                    {"layout", layout_text(run.head.layout)}};
  if (!run.head.settings.is_null()) all.emplace_back("settings", text(run.head.settings));
  if (!run.head.results.is_null()) all.emplace_back("results", text(run.head.results));
  return all;
}

template <class Number>
std::string bytes_of(std::span<const Number> values, std::endian order) {
  std::string bytes(reinterpret_cast<const char*>(values.data()), values.size_bytes());
  if (order == std::endian::native || sizeof(Number) == 1) return bytes;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(Number)) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + sizeof(Number)));
  }
  return bytes;
}

void write_whole(const OutputFile& file, const Array& array, std::endian order) {
  if (array.type != Array::Type::text) {
    file.write_at(array.offset, bytes_of(std::span<const std::int32_t>(array.whole), order));
    return;
  }
  std::string all;
  for (const std::string& text : array.texts) {
    std::string one = order == std::endian::big ? text : utf32(text);
    one.resize(array.text_bytes);
    all += one;
  }
  file.write_at(array.offset, all);
}

/// The rows of a batch, chain by chain, to their places.
void write_rows(const OutputFile& file, const Array& array, const Source& source, const Trace& trace, std::size_t first,
                std::endian order) {
  const auto put = [&](const auto& values, std::size_t width) {
    using Number = typename std::decay_t<decltype(values)>::value_type;
    const std::uint64_t all_draws = array.shape[1];
    for (std::size_t chain = 0; chain < trace.chains; ++chain) {
      const auto row = std::span<const Number>(values).subspan(chain * trace.draws * width, trace.draws * width);
      file.write_at(array.offset + (chain * all_draws + first) * width * sizeof(Number), bytes_of(row, order));
    }
  };
  switch (source.kind) {
    case Source::Kind::states: return put(trace.x.unpack(), trace.x.variables());
    case Source::Kind::monitor: return put(trace.monitors[source.monitor], 1);
    case Source::Kind::acceptance_rate: return put(trace.acceptance_rate, 1);
    case Source::Kind::n_steps:
      if (order == std::endian::little) return put(trace.n_steps, 1);
      return put(std::vector<double>(trace.n_steps.begin(), trace.n_steps.end()), 1);
    case Source::Kind::constant: return;
  }
}

void write_arrays(const Run& run, const OutputFile& file, const Plan& plan, std::endian order) {
  for (std::size_t k = 0; k < plan.arrays.size(); ++k) {
    if (plan.sources[k].kind == Source::Kind::constant) write_whole(file, plan.arrays[k], order);
  }
  run.for_each_batch([&](const Trace& trace, std::size_t first) {
    for (std::size_t k = 0; k < plan.arrays.size(); ++k) {
      write_rows(file, plan.arrays[k], plan.sources[k], trace, first, order);
    }
  });
}

void write_netcdf(const Run& run, OutputFile& file) {
  if (run.draws > static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max())) {
    throw InputError(fmt::format("{} has more draws than a NetCDF file can number; .npz takes them.", run.path));
  }
  Plan plan = plan_of(run, true);
  const std::string head = netcdf_head(plan.arrays, attributes_of(run));
  file.write_at(0, head);
  // Arrays are filled up to four bytes.
  const Array& last = plan.arrays.back();
  file.write_at(last.offset + last.entries() * sizeof(double) - 1, std::string(1, '\0'));
  write_arrays(run, file, plan, std::endian::big);
}

void write_npz(const Run& run, const OutputFile& file) {
  Plan plan = plan_of(run, false);
  for (const auto& [name, text] : attributes_of(run)) add_texts(plan, name, "", {text});
  for (Array& array : plan.arrays) {
    if (array.type != Array::Type::text) continue;
    array.text_bytes = 4;
    for (const std::string& text : array.texts) array.text_bytes = std::max(array.text_bytes, utf32(text).size());
  }
  NpzFile npz(plan.arrays, file);
  write_arrays(run, file, plan, std::endian::little);
  npz.finish();
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string csv_head(const Run& run) {
  std::string head = "chain,draw";
  for (const std::string& name : run.head.trace.monitor_names) head += ',' + csv_field(name);
  head += ",acceptance_rate,n_steps";
  const VariableLayout& layout = run.head.layout;
  for (std::size_t i = 0; i < run.variables(); ++i) {
    if (layout.is_lattice()) {
      head += fmt::format(",\"x[{},{}]\"", i / layout.columns, i % layout.columns);
    } else {
      head += ',' + csv_field(layout.names.empty() ? fmt::format("x[{}]", i) : layout.names[i]);
    }
  }
  return head + '\n';
}

void append_number(std::string& row, double value) {
  if (std::isfinite(value)) {
    fmt::format_to(std::back_inserter(row), ",{}", value);
  } else {
    row += std::isnan(value) ? ",NaN" : value > 0 ? ",Inf" : ",-Inf";
  }
}

void write_csv(const Run& run, const OutputFile& file) {
  std::string rows = csv_head(run);
  std::uint64_t at = 0;
  const auto flush = [&] {
    file.write_at(at, rows);
    at += rows.size();
    rows.clear();
  };
  const std::size_t variables = run.variables();
  run.for_each_batch([&](const Trace& trace, std::size_t first) {
    for (std::size_t draw = 0; draw < trace.draws; ++draw) {
      for (std::size_t chain = 0; chain < trace.chains; ++chain) {
        const std::size_t entry = chain * trace.draws + draw;
        fmt::format_to(std::back_inserter(rows), "{},{}", chain, first + draw);
        for (const std::vector<double>& monitor : trace.monitors) append_number(rows, monitor[entry]);
        append_number(rows, trace.acceptance_rate[entry]);
        fmt::format_to(std::back_inserter(rows), ",{}", trace.n_steps[entry]);
        for (std::size_t i = 0; i < variables; ++i) {
          rows += ',';
          rows += fmt::format_int(trace.x.label(entry, i)).c_str();
        }
        rows += '\n';
      }
      if (rows.size() > kBatchBytes) flush();
    }
  });
  flush();
}

}  // namespace

void check_export_name(const std::string& file) { static_cast<void>(format_of(file)); }

void export_run(const std::string& run, const std::string& file) {
  const Format format = format_of(file);
  const Run stored(run);
  OutputFile output(file);
  switch (format) {
    case Format::netcdf: write_netcdf(stored, output); break;
    case Format::npz: write_npz(stored, output); break;
    case Format::csv: write_csv(stored, output); break;
  }
  output.finish();
}

}  // namespace poise
