/// Lists of models and samplers, and examples.
#include "help.hpp"

#include <fmt/format.h>

#include <poise/run/model.hpp>
#include <poise/run/sampler.hpp>

namespace poise::app {

namespace {

/// Keys of the models; `IsingModel` documents them in full.
constexpr const char* kModelKeys = R"(
  Keys of ising (a comma between settings):
    size=30            N or ROWSxCOLUMNS
    lambda=1           coupling of neighbours
    mu=0, sigma=0      strength of the true image and of the noise
    field=uniform      alpha = s mu + U(-sigma, sigma), or gaussian: y mu / sigma^2, y = s mu + sigma N(0, 1)
    image=square       the true image s, or shapes: a disc, a ring, a triangle and a bar
    case=4             the four cases of the paper: (lambda, mu, sigma) = (0,1,3), (0,3,3), (1,1,3), (1,3,3)
    boundary=torus     or open
    seed=1             of the noise
    graph=FILE         any graph: a line 'variables edges', then lines 'i j [coupling]', counting from 1
)";

constexpr const char* kSamplerKeys = R"(
  Keys of lsb, lsb1 and lsb2 (a comma between settings):
    objective=variance or entropy, mi, mi-bound: what is learned for
    optimizer=adam     or sgd
    rate=0.01          of learning
    ridge=0.02         keeps the learned function smooth where states are rare
    schedule=two-phase or paper: learn from the first step on
  Keys of lsb2 besides: net=mlp,hidden=10 or net=monotone,blocks=20,units=20; init=sqrt (barker, min, max)
)";

std::string list(const char* title, const std::vector<SamplerHelp>& rows) {
  std::string out = fmt::format("{}:\n", title);
  for (const SamplerHelp& row : rows) out += fmt::format("  {:<7} {}\n", row.name, row.help);
  return out;
}

std::string models() { return list("Models", model_help()) + kModelKeys; }
std::string samplers() { return list("Samplers", sampler_help()) + kSamplerKeys; }

constexpr const char* kExitCodes =
    "Exit codes: 0 success; 1 failure while running; 2 bad usage or input, nothing written; 3 warnings under "
    "--strict;\n130 interrupted (Ctrl-C), what was drawn is kept.";

}  // namespace

std::string HelpFormatter::make_usage(const CLI::App* command, std::string) const {
  if (command->get_parent() == nullptr) return "Usage: poise COMMAND [OPTIONS]\n";
  const auto positionals = command->get_options([](const CLI::Option* option) { return option->get_positional(); });
  const std::string what = positionals.empty() ? "" : positionals.front()->get_type_name() + " ";
  return fmt::format("Usage: poise {} {}[OPTIONS]\n", command->get_name(), what);
}

std::string HelpFormatter::make_positionals(const CLI::App*) const { return ""; }

std::string program_footer() {
  return fmt::format(R"(Examples:
  poise sample ising:case=4 --out run.nc
  poise compare ising:case=4 --samplers lsb,lb:g=sqrt,gibbs
  poise summary run.nc

{})",
                     kExitCodes);
}

std::string sample_footer() {
  return fmt::format(R"({}
{}
Examples:
  poise sample ising:case=4
  poise sample ising:size=64,lambda=0.4 --sampler gibbs --draws 5000 --out run.nc
  poise sample ising:lambda=0.6 --field noisy.png --images out.png --plot balance.svg
  poise sample ising:case=3 --quiet --json - | jq .monitors.log_prob

{})",
                     models(), samplers(), kExitCodes);
}

std::string compare_footer() {
  return fmt::format(
      R"(Every sampler gets the same chains, warm-up and draws (or seconds). A comma in --samplers begins the next
sampler, unless a setting follows it: in 'lsb2:net=monotone,blocks=5,gibbs' blocks=5 still belongs to lsb2.

{}
{}
Examples:
  poise compare ising:case=4
  poise compare ising:case=4 --samplers lsb,lb:g=sqrt,lb:g=barker --chains 16 --thin 10 --draws 10000
  poise compare ising:size=100 --sampler gibbs --sampler lsb:objective=entropy --seconds 5 --json -

{})",
      models(), samplers(), kExitCodes);
}

std::string summary_footer() {
  return fmt::format(R"(Examples:
  poise summary run.nc
  poise summary run.nc --json - | jq .warnings

{})",
                     kExitCodes);
}

}  // namespace poise::app
