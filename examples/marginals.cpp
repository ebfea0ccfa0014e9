/// A network made in code, something seen, and what follows from it.
#include <poise/poise.hpp>

#include <iostream>

int main() {
  using poise::Index;
  poise::Network sprinkler;
  sprinkler.name = "sprinkler";
  sprinkler.names = {"rain", "sprinkler", "grass"};
  sprinkler.level_names = {{"no", "yes"}, {"off", "on"}, {"dry", "damp", "wet"}};
  sprinkler.cardinalities = {2, 2, 3};
  // The last variable of a scope changes fastest.
  sprinkler.add_factor(std::vector<Index>{0}, std::vector<double>{0.8, 0.2});
  sprinkler.add_factor(std::vector<Index>{0, 1}, std::vector<double>{0.6, 0.4, 0.99, 0.01});
  sprinkler.add_factor(std::vector<Index>{0, 1, 2},
                       std::vector<double>{1.0, 0.0, 0.0, 0.1, 0.3, 0.6, 0.0, 0.2, 0.8, 0.0, 0.05, 0.95});

  const auto seen = std::make_shared<const poise::Network>(condition(sprinkler, {{2, 2}}));  // the grass is wet
  const poise::MarginalsAnswer answer = poise::find_marginals(seen, {});
  std::cout << poise::marginals_text(answer, *seen, 100, 10);
}
