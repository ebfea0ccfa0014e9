/// Ten lines: sample an Ising posterior with the self-balancing sampler and look at the summary.
#include <poise/poise.hpp>

#include <iostream>

int main() {
  const poise::Model model = poise::make_model("ising:size=32,lambda=0.4,mu=1,sigma=2");
  poise::RunOptions options;
  options.chains = 4;
  options.warmup = 300;
  options.draws = 500;
  const poise::RunResult fit = poise::run(model, poise::parse_sampler("lsb"), options);
  std::cout << poise::report_text(poise::make_report(fit));
}
