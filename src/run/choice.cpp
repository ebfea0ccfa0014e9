/// Choices as JSON.
#include <poise/choice.hpp>

#include <array>
#include <cmath>
#include <utility>

#include <nlohmann/json.hpp>

namespace poise {

namespace {

using nlohmann::json;
using Number = std::pair<const char*, double CandidateScore::*>;

constexpr std::array<Number, 4> kCosts = {{{"setup", &CandidateScore::setup},
                                           {"target", &CandidateScore::target},
                                           {"ratio", &CandidateScore::ratio},
                                           {"gradient", &CandidateScore::gradient}}};
constexpr std::array<Number, 6> kNumbers = {{{"run_work", &CandidateScore::run_work},
                                             {"draws", &CandidateScore::draws},
                                             {"pilot_work", &CandidateScore::pilot_work},
                                             {"ess_per_draw", &CandidateScore::ess_per_draw},
                                             {"score", &CandidateScore::score},
                                             {"r_hat", &CandidateScore::r_hat}}};

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

double number_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? found->get<double>() : CandidateScore::kUnknown;
}

std::string text_of(const json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace

json choice_json(const Choice& choice) {
  json out = {{"sampler", choice.sampler},
              {"reason", choice.reason},
              {"unit", choice.unit},
              {"pilot_work", number(choice.pilot_work)},
              {"candidates", json::array()}};
  for (const CandidateScore& one : choice.candidates) {
    json row = {{"sampler", one.sampler}, {"slowest", one.slowest}, {"verdict", one.verdict}};
    for (const auto& [key, member] : kCosts) row["costs"][key] = number(one.*member);
    for (const auto& [key, member] : kNumbers) row[key] = number(one.*member);
    out["candidates"].push_back(std::move(row));
  }
  return out;
}

std::optional<Choice> read_choice(const json& value) {
  if (!value.is_object() || text_of(value, "sampler").empty()) return std::nullopt;
  Choice choice{
      text_of(value, "sampler"), text_of(value, "reason"), text_of(value, "unit"), number_of(value, "pilot_work"), {}};
  const auto list = value.find("candidates");
  if (list == value.end() || !list->is_array()) return choice;
  for (const json& one : *list) {
    if (!one.is_object()) continue;
    CandidateScore score;
    score.sampler = text_of(one, "sampler");
    score.slowest = text_of(one, "slowest");
    score.verdict = text_of(one, "verdict");
    const json costs = one.value("costs", json::object());
    for (const auto& [key, member] : kCosts) {
      if (costs.is_object()) score.*member = number_of(costs, key);
    }
    for (const auto& [key, member] : kNumbers) score.*member = number_of(one, key);
    choice.candidates.push_back(std::move(score));
  }
  return choice;
}

}  // namespace poise
