/// Answers of variable selection as text, JSON, and the tables of other tools.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>

#include <fmt/format.h>

#include <poise/selection.hpp>
#include "report/text.hpp"

namespace poise {

namespace {

/// By inclusion probability, the highest first.
std::vector<Index> ranking(const SelectionAnswer& answer) {
  std::vector<Index> order(answer.variables.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return answer.variables[a].pip > answer.variables[b].pip; });
  return order;
}

std::string names_of(const SelectionAnswer& answer, const std::vector<Index>& variables, std::size_t most = 8) {
  std::string out;
  for (std::size_t k = 0; k < std::min(most, variables.size()); ++k) {
    out += (k == 0 ? "" : " ") + answer.variables[variables[k]].name;
  }
  if (variables.size() > most) out += fmt::format(" and {} more", variables.size() - most);
  return out.empty() ? "(none)" : out;
}

/// Variables of a model by what differs from the first model, where there are too many to show.
std::string names_beside_first(const SelectionAnswer& answer, std::size_t k) {
  constexpr std::size_t kMostShown = 8;
  const std::vector<Index>& first = answer.models.front().variables;
  const std::vector<Index>& own = answer.models[k].variables;
  if (k == 0 || own.size() <= kMostShown) return names_of(answer, own, kMostShown);
  std::vector<Index> more;
  std::vector<Index> less;
  std::set_difference(own.begin(), own.end(), first.begin(), first.end(), std::back_inserter(more));
  std::set_difference(first.begin(), first.end(), own.begin(), own.end(), std::back_inserter(less));
  if (more.size() + less.size() > kMostShown) return names_of(answer, own, kMostShown);
  std::string out = "as 1";
  if (!more.empty()) out += " with " + names_of(answer, more);
  if (!less.empty()) out += std::string(more.empty() ? "" : " and") + " without " + names_of(answer, less);
  return out;
}

/// 1, 2, ... of the set that a variable is in, 0 of those in none.
std::vector<std::size_t> set_of(const SelectionAnswer& answer) {
  std::vector<std::size_t> out(answer.variables.size(), 0);
  for (std::size_t k = 0; k < answer.sets.size(); ++k) {
    for (const Index j : answer.sets[k].variables) out[j] = k + 1;
  }
  return out;
}

/// log10 of the posterior odds of a variable over its prior odds.
std::string log10_bf(const SelectedVariable& one) {
  const auto log_odds = [](double p) {
    const double inside = std::clamp(p, 1e-300, 1.0 - 1e-16);
    return std::log10(inside / (1.0 - inside));
  };
  return fmt::format("{:.4f}", log_odds(one.pip) - log_odds(one.prior));
}

void add_sets(const SelectionAnswer& answer, std::size_t width, std::string& out) {
  if (answer.sets.empty()) {
    out += fmt::format("\nno credible set: no group of correlated variables contains a signal with probability {:g}\n",
                       answer.coverage);
    return;
  }
  text::Table sets({"set", "variables", "P(signal)", "purity", "<names"});
  for (std::size_t k = 0; k < answer.sets.size(); ++k) {
    const CredibleSet& set = answer.sets[k];
    sets.add({fmt::format("{}", k + 1), fmt::format("{}", set.variables.size()), fmt::format("{:.3f}", set.mass),
              fmt::format("{:.3f}", set.purity), names_of(answer, set.variables)});
  }
  out += fmt::format("\ncredible sets: small groups of correlated variables with a signal with probability {:g}\n",
                     answer.coverage);
  out += sets.text(width);
}

/// Each number of variables with its probability, or their mean and range where there are many.
std::string sizes_text(const std::vector<double>& sizes) {
  constexpr std::size_t kFew = 6;
  constexpr double kTail = 0.025;
  std::vector<std::string> words;
  double mean = 0.0;
  double below = 0.0;
  std::size_t low = 0;
  std::size_t high = 0;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    if (sizes[k] >= 0.001) words.push_back(fmt::format("{} with P {:.3f}", k, sizes[k]));
    mean += static_cast<double>(k) * sizes[k];
    below += sizes[k];
    if (below < kTail) low = k + 1;
    if (below < 1.0 - kTail) high = k + 1;
  }
  if (words.size() <= kFew) return fmt::format("number of variables: {}", fmt::join(words, ", "));
  return fmt::format("number of variables: mean {:.1f}, 95 % between {} and {}", mean, low, high);
}

}  // namespace

std::string selection_text(const SelectionAnswer& answer, std::size_t width, std::size_t most) {
  std::string out =
      fmt::format("{}: {} of {}, one every {}, by {} in {}\n\n", answer.model,
                  text::plural(answer.report.chains, "chain"), text::plural(answer.report.draws, "draw"),
                  text::every(answer.report.thin, "step"), answer.report.sampler, text::duration(answer.seconds));
  text::Table variables({"variable", "PIP", "s.e.", "mean", "s.d.", "from", "to"});
  const std::vector<Index> order = ranking(answer);
  for (std::size_t k = 0; k < std::min(most, order.size()); ++k) {
    const SelectedVariable& one = answer.variables[order[k]];
    variables.add({one.name, fmt::format("{:.4f}", one.pip), fmt::format("{:.4f}", one.pip_se), text::number(one.mean),
                   text::number(one.sd), text::number(one.low), text::number(one.high)});
  }
  out += variables.text(width);
  if (order.size() > most) out += fmt::format("... and {} more\n", order.size() - most);
  add_sets(answer, width, out);
  text::Table models({"model", "P", "log posterior", "<variables"});
  for (std::size_t k = 0; k < answer.models.size(); ++k) {
    const SelectedModel& one = answer.models[k];
    models.add({fmt::format("{}", k + 1), fmt::format("{:.4f}", one.probability),
                fmt::format("{:.2f}", one.log_posterior), names_beside_first(answer, k)});
  }
  out += "\n" + models.text(width) + "\n" + sizes_text(answer.sizes) + "\n";
  for (const std::string& note : answer.notes) out += text::wrap(note, "note: ", width);
  return out + text::warnings(answer.warnings, width);
}

nlohmann::json selection_json(const SelectionAnswer& answer) {
  nlohmann::json json = {{"version", POISE_VERSION},
                         {"model", answer.model},
                         {"response", answer.response},
                         {"intercept", answer.intercept},
                         {"sizes", answer.sizes},
                         {"coverage", answer.coverage},
                         {"warnings", answer.warnings},
                         {"notes", answer.notes},
                         {"seconds", answer.seconds},
                         {"interrupted", answer.interrupted},
                         {"report", report_json(answer.report)}};
  const auto names = [&](const std::vector<Index>& variables) {
    nlohmann::json list = nlohmann::json::array();
    for (const Index j : variables) list.push_back(answer.variables[j].name);
    return list;
  };
  nlohmann::json& variables = json["variables"] = nlohmann::json::array();
  for (const SelectedVariable& one : answer.variables) {
    variables.push_back({{"name", one.name},
                         {"pip", one.pip},
                         {"pip_se", one.pip_se},
                         {"mean", one.mean},
                         {"sd", one.sd},
                         {"mean_included", one.mean_included},
                         {"sd_included", one.sd_included},
                         {"low", one.low},
                         {"high", one.high}});
  }
  nlohmann::json& models = json["models"] = nlohmann::json::array();
  for (const SelectedModel& one : answer.models) {
    models.push_back({{"variables", names(one.variables)},
                      {"probability", one.probability},
                      {"log_posterior", one.log_posterior},
                      {"log_bayes_factor", one.log_bayes_factor}});
  }
  nlohmann::json& sets = json["sets"] = nlohmann::json::array();
  for (const CredibleSet& one : answer.sets) {
    sets.push_back(
        {{"variables", names(one.variables)}, {"share", one.share}, {"mass", one.mass}, {"purity", one.purity}});
  }
  return json;
}

namespace {

std::string number_or_na(double value) { return std::isnan(value) ? "NA" : fmt::format("{:.6g}", value); }

}  // namespace

std::string finemap_snp(const SelectionAnswer& answer) {
  std::string out = "index rsid";
  for (const std::string& head : answer.summary.extra_heads) out += " " + head;
  out += " z prob log10bf mean sd mean_incl sd_incl prob_se\n";
  for (const Index j : ranking(answer)) {
    const SelectedVariable& one = answer.variables[j];
    out += fmt::format("{} {}", j + 1, one.name);
    if (j < answer.summary.extra.size()) {
      for (const std::string& word : answer.summary.extra[j]) out += " " + word;
    }
    const double z = j < answer.summary.z.size() ? answer.summary.z[j] : std::nan("");
    out += fmt::format(" {:.6g} {:.6g} {} {:.6g} {:.6g} {} {} {:.3g}\n", z, one.pip, log10_bf(one), one.mean, one.sd,
                       number_or_na(one.mean_included), number_or_na(one.sd_included), one.pip_se);
  }
  return out;
}

std::string finemap_config(const SelectionAnswer& answer) {
  std::string out = "rank config prob log10bf k log_posterior\n";
  for (std::size_t k = 0; k < answer.models.size(); ++k) {
    const SelectedModel& one = answer.models[k];
    std::string names;
    for (const Index j : one.variables) names += (names.empty() ? "" : ",") + answer.variables[j].name;
    out += fmt::format("{} {} {:.6g} {:.6g} {} {:.6g}\n", k + 1, names.empty() ? "null" : names, one.probability,
                       one.log_bayes_factor / std::log(10.0), one.variables.size(), one.log_posterior);
  }
  return out;
}

std::string finemap_cred(const SelectionAnswer& answer) {
  std::string out = "index";
  std::size_t rows = 0;
  for (std::size_t k = 0; k < answer.sets.size(); ++k) {
    out += fmt::format(" cred{} prob{}", k + 1, k + 1);
    rows = std::max(rows, answer.sets[k].variables.size());
  }
  out += "\n";
  for (std::size_t row = 0; row < rows; ++row) {
    out += fmt::format("{}", row + 1);
    for (const CredibleSet& set : answer.sets) {
      out += row < set.variables.size()
                 ? fmt::format(" {} {:.6g}", answer.variables[set.variables[row]].name, set.share[row])
                 : std::string(" NA NA");
    }
    out += "\n";
  }
  return out;
}

std::string selection_table(const SelectionAnswer& answer) {
  const std::vector<std::size_t> sets = set_of(answer);
  const bool is_summary = !answer.summary.z.empty();
  std::string out = is_summary ? "SNP" : "variable";
  for (const std::string& head : answer.summary.extra_heads) out += "\t" + head;
  out += is_summary ? "\tZ\tPIP\tPIP_SE\tBETA_MEAN\tBETA_SD\tCREDIBLE_SET\n"
                    : "\tPIP\tPIP_SE\tBETA_MEAN\tBETA_SD\tCREDIBLE_SET\n";
  for (std::size_t j = 0; j < answer.variables.size(); ++j) {
    const SelectedVariable& one = answer.variables[j];
    out += one.name;
    if (j < answer.summary.extra.size()) {
      for (const std::string& word : answer.summary.extra[j]) out += "\t" + word;
    }
    if (is_summary) out += fmt::format("\t{:.6g}", answer.summary.z[j]);
    out += fmt::format("\t{:.6g}\t{:.3g}\t{:.6g}\t{:.6g}\t{}\n", one.pip, one.pip_se, one.mean, one.sd, sets[j]);
  }
  return out;
}

}  // namespace poise
