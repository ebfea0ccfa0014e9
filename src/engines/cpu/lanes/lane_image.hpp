/// A model laid out for lanes as plain arrays that can be copied to a device as they are.
///
/// This header is C++17, for compilers of device code.
#pragma once

#include <cstdint>
#include <vector>

namespace poise {

class LaneModel;

/// A variable, with all that its update begins with.
struct alignas(16) ImageVariable {
  std::uint64_t scatter;  ///< how far its random words are from those of variable 0, before they are mixed
  std::uint32_t first_pair;
  std::uint32_t end_pair;
  std::uint32_t first_term;
  std::uint32_t end_term;
  std::uint32_t entry;  ///< number of its level 1 among all levels above 0, in the order of updates
  std::uint32_t levels;
  float base;    ///< of two levels: log odds without the others
  float spread;  ///< relative error of odds, at most
  float margin;  ///< error of a probability beside it, with 2^-21 more than the CPU needs
  std::uint32_t variable;
};

/// A factor of two variables with two levels each: log odds with the other at level 0, and at level 1.
struct alignas(16) ImagePair {
  std::uint32_t position;
  float log_odds[2];
  std::uint32_t unused;
};

/// A table over a few others: one of 2^bits entries, or 16, for each level, or one of log odds.
struct alignas(16) ImageTerm {
  std::uint32_t table;
  std::uint32_t first_others;
  std::uint32_t end_others;
  std::uint32_t bits;  ///< of a place in the table
};

/// Two of them, so that few loads wait for each other; where there is no second one it is the first, times 0.
struct alignas(16) ImageOthers {
  std::uint32_t position[2];
  std::uint32_t factor[2];  ///< what their levels are multiplied by in the place
};

/// What floats look at.
struct LaneImage {
  explicit LaneImage(const LaneModel& model);

  std::vector<ImageVariable> variables;
  std::vector<ImagePair> pairs;
  std::vector<ImageTerm> terms;
  std::vector<ImageOthers> others;
  std::vector<float> tables;
  std::vector<std::uint32_t> colours;  ///< first position of each, and the end of the last

  // For models whose lanes can be heated and whose tables have zeros; empty elsewhere.
  std::vector<float> zeros;                ///< by position: of level 1 less those of level 0, without the others
  std::vector<std::uint32_t> zero_tables;  ///< of each term, the numbers of zeros in its table; 0 where it has none
};

struct ExactSite {
  std::uint32_t position;
  std::uint32_t stride;  ///< in the factor's table
};

struct alignas(16) ExactFactor {
  std::uint32_t first_entry;  ///< factors may share a table
  std::uint32_t first_site;
  std::uint32_t end_site;
  std::uint32_t unused;
};

struct ExactLink {
  std::uint32_t factor;
  std::uint32_t stride;  ///< of the variable in the factor's table
};

/// What settles updates that floats cannot tell, and what log p is summed from: log tables as integers.
struct ExactTables {
  static constexpr std::int64_t kZero = INT64_MIN;  ///< stands for log 0

  double unit = 1.0;  ///< logarithm that a one stands for
  std::vector<std::int64_t> values;
  std::vector<ExactFactor> factors;
  std::vector<ExactSite> sites;
  std::vector<std::uint32_t> first_link;  ///< by position, and one more
  std::vector<ExactLink> links;
  std::vector<std::int64_t> lowest;  ///< of each factor: what a zero counts as when heated; empty where there is none
};

}  // namespace poise
