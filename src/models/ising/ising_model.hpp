/// From a spec and its files to the numbers of an Ising model: lattice or graph, couplings and fields.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <poise/extend/base/spec.hpp>
#include <poise/types.hpp>
#include "models/ising/spin_graph.hpp"

namespace poise {

/// log p(x) = sum_i field[i] x[i] + sum over edges of coupling x[i] x[j] + constant, with x[i] in {-1, +1}.
///
/// A lattice joins each site with its neighbours in the row and in the column, each edge once, all with `coupling`. On
/// a torus the last site of a row or column is also joined with the first. In a dimension of two sites these are two
/// parallel edges and both count, so the coupling there is twice as strong; in a dimension of one site there is no edge
/// (a site joined with itself would add a constant).
struct IsingModel {
  Index rows = 0;  ///< of a lattice, stored row by row; rows and columns are 0 for a graph
  Index columns = 0;
  std::vector<Index> sides;  ///< of a lattice of three dimensions and more, whose edges are listed as those of a graph
  bool torus = false;
  double coupling = 0;             ///< lambda: of every lattice edge; in a graph, of the edges without a number
  std::vector<double> field;       ///< alpha, one number per variable
  std::vector<double> observed;    ///< the noisy image to show beside the result; the field itself where there is none
  std::vector<std::int8_t> truth;  ///< the true object, -1 or +1; empty where nothing is known of it
  Index variables = 0;
  std::vector<Edge> edges;    ///< of a graph; a lattice has its edges by rule
  std::string name;           ///< the spec with defaults filled in: it gives the same model again, with the same files
  bool is_posterior = false;  ///< of hidden variables given data, where energy and magnetisation mean nothing
  bool zero_one = false;      ///< draws call the levels 0 and 1, not -1 and +1

  /// What is optimised, of models that come from such a problem, "cut" or "energy"; empty for others. In a state where
  /// log p(x) is S + constant, S being the two sums above, it is objective_scale * S + objective_constant.
  std::string objective;
  double objective_scale = 0;
  double objective_constant = 0;

  [[nodiscard]] bool is_lattice() const { return rows > 0; }
  /// What S lacks to be the objective over its scale: beta cut, or -beta energy.
  [[nodiscard]] double log_constant() const { return objective.empty() ? 0.0 : objective_constant / objective_scale; }
};

/// Fields or couplings that no table of a network can hold.
class TooStrong : public InputError {
 public:
  using InputError::InputError;
};

/// Files that go with a spec and have options of their own.
struct IsingFiles {
  std::string field_path;  ///< `--field`: a PNG or PGM image, or numbers as text (told apart by content); empty: none
};

/// Reads `ising:key=value,...`. Throws InputError.
///
/// - `size=30`: N or ROWSxCOLUMNS, each 1 to 65535, at most 2^28 sites in all; or three to eight sides, such as 8x8x8,
///   at most 2^24 sites in all, without images
/// - `coupling=1`; `lambda`, the name of the paper, is the same
/// - `beta=1` or `T=1`, one over the other: coupling and field are multiplied by beta
/// - `mu=0`, `sigma=0`: strength of the true image and of the noise; no field when both are 0
/// - `seed=1`: of the noise
/// - `boundary=torus` or `open`
/// - `field=uniform`: alpha = s mu + U(-sigma, sigma);
///   `field=gaussian`: alpha = y mu / sigma^2 with y = s mu + sigma N(0, 1), for sigma > 0
/// - `image=square`: s = +1 in the central square, rows and columns 7 to 22 of 30 (from 0), and -1 elsewhere;
///   `image=shapes`: s = +1 in a disc, a ring, a triangle and a bar;
///   `image=disc`: s = +1 in a disc in the middle, of half the area of the square
/// - `case=1` to `4`: (lambda, mu, sigma) = (0,1,3), (0,3,3), (1,1,3), (1,3,3); keys given beside it prevail
/// - `graph=FILE`: an edge list in place of the lattice; s = +1 everywhere
///
/// With a field file the size comes from the file. An image gives y in [-1, 1] (black to white) and
/// alpha = y mu / sigma^2, where mu and sigma default to 1; numbers are alpha itself.
IsingModel make_ising(const Spec& spec, const IsingFiles& files = {});

/// Reads `maxcut:file=FILE,beta=1`: a graph with weights, as a distribution over the two sides of its vertices,
/// p(x) proportional to exp(beta cut(x)), where cut is the sum of the weights of the edges between the sides and beta
/// is greater than 0. The objective is `cut`. Throws InputError.
IsingModel make_maxcut(const Spec& spec);

/// Reads `qubo:file=FILE,beta=1,sense=min`: a quadratic function of zeros and ones, or of spins, as a distribution,
/// p(x) proportional to exp(-beta energy(x)), or to exp(beta energy(x)) with `sense=max`. Draws are zeros and ones,
/// or spins where the function is of spins. beta is greater than 0. The objective is `energy`. Throws InputError.
IsingModel make_qubo(const Spec& spec);

/// Reads `bernoulli:size=10000,mu=0,sigma=0.5,seed=1`: independent variables, whose log odds of being up are drawn from
/// N(mu, sigma^2). Throws InputError.
IsingModel make_bernoulli(const Spec& spec);

/// A factorial hidden Markov model with everything that is drawn of it. There are `chains` hidden chains of zeros and
/// ones; each is on at first with probability `start` and at every later time as before with probability `stay`. Seen
/// is y_t = offset + sum of the weights of the chains that are on + sigma N(0, 1).
struct HiddenMarkov {
  Index length = 200;
  Index chains = 50;
  double start = 0.1;
  double stay = 0.8;
  double sigma = 2.0;
  std::vector<double> weights;     ///< one per chain, N(0, 1)
  double offset = 0.0;             ///< N(0, 1)
  std::vector<double> seen;        ///< y, one number per time
  std::vector<std::int8_t> truth;  ///< the hidden levels behind it, -1 or +1, all chains of a time together
};

/// What `fhmm:length=200,chains=50,start=0.1,stay=0.8,sigma=2,seed=1` draws. Throws InputError.
HiddenMarkov draw_fhmm(const Spec& spec);

/// The posterior of the hidden levels given what is seen, of the same spec. log p is quadratic in every time, so that
/// it is an Ising model: all chains of a time interact with each other, and each with itself a time later. Variable
/// t * chains + k is chain k at time t, -1 where it is off. Throws InputError.
IsingModel make_fhmm(const Spec& spec);

/// Numbers in rows of equal length, row by row.
struct Matrix {
  Index rows = 0;
  Index columns = 0;
  std::vector<double> values;
};

/// Reads rows of numbers separated by blanks or single commas; '#' starts a comment. `name` is for messages.
Matrix parse_matrix(std::string_view content, std::string_view name);

/// The same in any layout: rows may differ in length.
std::vector<double> parse_numbers(std::string_view content, std::string_view name);

/// A graph: edges between variables 0 .. variables-1, none twice, none from a variable to itself.
struct EdgeList {
  Index variables = 0;
  std::vector<Edge> edges;
};

/// Reads a line `variables edges` and that many lines `i j [coupling]`, where variables count from 1 (the format of
/// rudy and the G-set). '#' starts a comment, and so does a line that begins with the word `c`. There may be at most a
/// million more variables than the content has bytes, here and below: a size is not taken on trust.
EdgeList parse_edges(std::string_view content, std::string_view name, double default_coupling);

/// The same for max-cut, as the G-set, Biq Mac and the torus files have it: weights in place of couplings, 1 where
/// there is none; the first line may have a third number, which means nothing here.
EdgeList parse_maxcut(std::string_view content, std::string_view name);

/// energy(x) = sum of linear[i] x[i] + sum over `quadratic` of coupling x[i] x[j], each pair once.
struct Qubo {
  bool spins = false;  ///< x[i] in {-1, +1}, otherwise in {0, 1}
  std::vector<double> linear;
  std::vector<Edge> quadratic;
};

/// Reads lines `i j value`, where variables count from 0 and `i i value` is linear, in one of two forms:
///
/// - the coordinate list of dimod: a comment `# vartype=SPIN` makes the variables spins, `# vartype=BINARY` or none
///   makes them 0 or 1; values of the same pair, in either order, add up, so that a full matrix can be given. There are
///   as many variables as the largest number calls for;
/// - the format of qbsolv: a line `p qubo topology variables diagonals couplers` first, then as many lines as it says,
///   none for the same pair as another.
///
/// A line that begins with the word `c` is a comment.
Qubo parse_qubo(std::string_view content, std::string_view name);

/// The distribution of such a function, exp(-beta (energy(x) + offset)), or exp(beta (energy(x) + offset)) to be
/// `maximised`. The offset is part of the energy that is reported, and of log Z. `name` begins messages.
struct QuboSettings {
  double beta = 1.0;
  bool maximise = false;
  double offset = 0.0;
  std::string name;
};
IsingModel ising_of_qubo(Qubo qubo, const QuboSettings& settings);
/// The same of cuts, exp(beta cut(x)).
IsingModel ising_of_cut(EdgeList graph, double beta, std::string name);

/// Makes it a lattice of any number of sides with its own coupling, the edges listed.
void set_grid(const GridShape& shape, IsingModel& ising);

/// Lists the edges of a lattice in `edges`; a double edge is one with twice the coupling.
void list_lattice_edges(IsingModel& ising);

}  // namespace poise
