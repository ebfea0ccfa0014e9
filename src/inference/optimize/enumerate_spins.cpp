/// All states in the order of a Gray code, one flip from each to the next.
#include "inference/optimize/enumerate_spins.hpp"

#include <bit>
#include <vector>

namespace poise {

void enumerate_spins(const SpinProblem& problem, const FreeFlips& flips, SearchRecord& record) {
  const Index n = problem.num_variables();
  std::vector<Spin> spins(n, 1);
  std::vector<std::int64_t> local(n);
  for (Index i = 0; i < n; ++i) local[i] = problem.local_field(i, spins);
  std::int64_t value = problem.value(spins);
  record.add(value, spins);
  std::vector<Index> turned;
  for (Index i = 0; i < n; ++i) {
    if (!flips.is_first(i)) turned.push_back(i);
  }
  const std::uint64_t states = std::uint64_t{1} << turned.size();
  for (std::uint64_t number = 1; number < states; ++number) {
    const Index i = turned[std::countr_zero(number)];
    value -= 2 * spins[i] * local[i];
    spins[i] = static_cast<Spin>(-spins[i]);
    for (std::size_t k = problem.start[i]; k < problem.start[i + 1]; ++k) {
      local[problem.neighbour[k]] += 2 * problem.weight[k] * spins[i];
    }
    if (record.pool.takes(value)) record.add(value, spins);
  }
}

}  // namespace poise
