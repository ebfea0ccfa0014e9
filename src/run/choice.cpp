/// Choices as JSON.
#include <poise/choice.hpp>

#include <cmath>

#include <nlohmann/json.hpp>

namespace poise {

namespace {

using nlohmann::json;

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
    const json costs = {{"setup", number(one.setup)},
                        {"target", number(one.target)},
                        {"ratio", number(one.ratio)},
                        {"gradient", number(one.gradient)}};
    out["candidates"].push_back({{"sampler", one.sampler},
                                 {"costs", costs},
                                 {"run_work", number(one.run_work)},
                                 {"draws", number(one.draws)},
                                 {"pilot_work", number(one.pilot_work)},
                                 {"ess_per_draw", number(one.ess_per_draw)},
                                 {"slowest", one.slowest},
                                 {"score", number(one.score)},
                                 {"r_hat", number(one.r_hat)},
                                 {"verdict", one.verdict}});
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
    const json costs = one.value("costs", json::object());
    if (costs.is_object()) {
      score.setup = number_of(costs, "setup");
      score.target = number_of(costs, "target");
      score.ratio = number_of(costs, "ratio");
      score.gradient = number_of(costs, "gradient");
    }
    score.run_work = number_of(one, "run_work");
    score.draws = number_of(one, "draws");
    score.pilot_work = number_of(one, "pilot_work");
    score.ess_per_draw = number_of(one, "ess_per_draw");
    score.slowest = text_of(one, "slowest");
    score.score = number_of(one, "score");
    score.r_hat = number_of(one, "r_hat");
    score.verdict = text_of(one, "verdict");
    choice.candidates.push_back(std::move(score));
  }
  return choice;
}

}  // namespace poise
