/// Lists of models and samplers, and examples.
#include "help.hpp"

#include <fmt/format.h>

#include <poise/model.hpp>
#include <poise/sampler.hpp>

namespace poise::app {

namespace {

/// Keys of the models; `IsingModel` documents them in full.
constexpr const char* kModelKeys = R"(
  Keys of ising (a comma between settings):
    size=30            N or ROWSxCOLUMNS, or up to eight sides, such as 8x8x8
    coupling=1         coupling of neighbours; lambda is another name
    beta=1             multiplies coupling and field; T is one over beta
    mu=0, sigma=0      strength of the true image and of the noise
    field=uniform      s mu + U(-sigma, sigma); or gaussian: y mu / sigma^2 with y = s mu + sigma N(0, 1)
    image=square       the true image s, or disc: half of the area; or shapes: a disc, a ring, a triangle and a bar
    case=4             the four cases of the paper: (coupling, mu, sigma) = (0,1,3), (0,3,3), (1,1,3), (1,3,3)
    boundary=torus     or open
    seed=1             of the noise
    graph=FILE         any graph: a line 'variables edges', then lines 'i j [coupling]', counting from 1
  Keys of potts: size=30, levels=3, coupling=1, field=0 (of level 0), beta=1 or T=1, boundary=torus or open;
    sigma=0, seed=1    a field of every level of every site, drawn from U(-sigma, sigma)
  Keys of bernoulli: size=10000; mu=0, sigma=0.5, seed=1: log odds of N(mu, sigma^2)
  Keys of fhmm (y_t = b + sum_k w_k x_tk + sigma N(0, 1), where w, b and the hidden x behind y are drawn):
    length=200, chains=50  times and hidden chains
    start=0.1, stay=0.8    P(a chain is on at first), P(a chain stays as it was)
    sigma=2, seed=1        noise, and the seed of all that is drawn
  Keys of selection: data=FILE, response=y, or z=FILE, ld=FILE, n=N; inclusion, beta-a, beta-b,
    slab=independent or g, slab-variance, residual-variance, scaling=standard, centre or none
  Keys of maxcut: file=FILE, beta=1 or T=1; of qubo: file=FILE, beta=1 or T=1, sense=min or max, offset=0;
    A file of maxcut has a line 'vertices edges', then lines 'i j [weight]', counting from 1; one of qubo has
    lines 'i j value', counting from 0, linear where i = j
)";

constexpr const char* kSamplerKeys = R"(
  Keys of lsb, lsb1 and lsb2 (a comma between settings):
    objective=variance learning objective; or entropy, mi, mi-bound
    optimizer=adam     or sgd
    rate=0.01          learning rate
    ridge=0.02         penalty that keeps the function smooth where states are rare
    schedule=two-phase or paper: learn from the first step on
  Further keys of lsb2: net=mlp,hidden=10 or net=monotone,blocks=20,units=20; init=sqrt (barker, min, max)
)";

std::string list(const char* title, const std::vector<NameHelp>& rows) {
  std::string out = fmt::format("{}:\n", title);
  for (const NameHelp& row : rows) out += fmt::format("  {:<9}  {}\n", row.name, row.help);
  return out;
}

constexpr const char* kModelFiles =
    "  files      networks: FILE.uai, FILE.bif, with --evidence FILE; cuts: FILE.mc; quadratic functions: FILE.qubo, "
    "FILE.coo\n";

std::string models() { return list("Models", model_help()) + kModelFiles + kModelKeys; }
std::string samplers() { return list("Samplers", sampler_help()) + kSamplerKeys; }

constexpr const char* kExitCodes =
    "Exit codes: 0 success; 1 failure while running; 2 bad usage or input, nothing written; 3 warnings under "
    "--strict;\n130 interrupted (Ctrl-C), what was drawn is kept.";
constexpr const char* kExitCodesWithoutStrict =
    "Exit codes: 0 success; 1 failure while running; 2 bad usage or input, nothing written; 130 interrupted (Ctrl-C).";

}  // namespace

std::string program_footer() {
  return fmt::format(R"(Examples:
  poise sample ising:case=4 --out run.zarr
  poise marginals net.uai --evidence net.uai.evid --out net.MAR
  poise compare ising:case=4 --samplers lsb,lb:g=sqrt,gibbs
  poise summary run.zarr

'poise help COMMAND' has the options of a command.

{})",
                     kExitCodes);
}

std::string sample_footer() {
  return fmt::format(R"({}
{}
Memory does not grow with --draws. With --out all draws are on the disk, and those that exceed --memory are diagnosed
from there. Without --out, states that would exceed --memory are not kept; the program says so before the run starts.

Examples:
  poise sample ising:case=4
  poise sample ising:size=64,coupling=0.4 --sampler gibbs --draws 5000 --out run.zarr
  poise sample net.uai --evidence net.uai.evid --sampler gibbs --json net.json
  poise sample ising:lambda=0.6 --field noisy.png --sampler lsb --images out.png --report run.html
  poise sample ising:case=3 --quiet --json - | jq .monitors.log_prob
  mpirun -n 8 poise sample ising:size=256,lambda=0.44 --chains 64 --out run.zarr

Under mpirun or srun, chains are divided among ranks; draws, store and summary are those of one process. Each rank has
as many threads as its share of the cores, unless --threads is given.

{})",
                     models(), samplers(), kExitCodes);
}

std::string resume_footer() {
  return fmt::format(
      R"(A run with --out leaves a checkpoint inside RUN.zarr when it is interrupted, and every 30 seconds once it has lasted a
minute (--checkpoint: from the start). It resumes with the same model, sampler and options, and its draws are bitwise those
of a run that was never stopped. The files of the model must be unchanged; threads and ranks (mpirun, srun) may differ.
--draws N extends a finished run to N draws per chain, identical to a run started with N. If auto chose the sampler, its
choice stays.
Runs of Python's poise.sample(out=...) are resumed too, unless their model is code or arrays: poise.resume(file, model)
continues those. What 'poise train' or 'poise optimize' began is resumed from its checkpoint in the same way.

Examples:
  poise sample ising:size=64,lambda=0.4 --draws 100000 --out run.zarr --checkpoint
  poise resume run.zarr
  poise resume run.zarr --draws 200000
  poise resume rbm.safetensors

{})",
      kExitCodes);
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
  return fmt::format(
      R"(The run may be larger than memory: it is read part by part. If a single series exceeds --memory, draws are thinned for
diagnosis, with a note; effective sample sizes are then lower bounds.

Examples:
  poise summary run.zarr
  poise summary run.zarr --json - | jq .warnings

{})",
      kExitCodes);
}

std::string scan_footer() {
  return fmt::format(
      R"(The key is a parameter of the model. Spin models report their observables, other models the means of their monitors, each
with its standard error.

If the parameter multiplies log p (beta, T, a coupling without field), all points are one replica exchange: neighbours swap
states, which carries chains over barriers. Errors of neighbouring points are then correlated; the line below the table
and JSON say by how much. The sampler is sw where there are clusters, else gibbs, or any that does not adapt itself.

With --exchange no, and for other parameters and samplers, points are independent runs, one on each thread.
--seconds is for all points together. With --json FILE a scan that was killed continues by the same command; independent
points that more values add are run alone.

Examples:
  poise scan ising:size=64 --over T=2.0..2.6:13 --json scan.json --plot scan.svg
  poise scan ising:size=64 --over T=2.0..2.6:13 --sampler wolff
  poise scan potts:size=32,levels=3 --over coupling=0.9,1,1.1 --csv - --quiet

{}
{})",
      models(), kExitCodes);
}

std::string report_footer() {
  return fmt::format(
      R"(The page needs no other file and no network. It has the settings, warnings with what to type next, sortable tables,
traces, rank histograms, autocorrelations, and the means of a lattice. 'poise sample --report' makes it when the run ends.

Examples:
  poise report run.zarr
  poise report run.zarr --out page.html --plot pictures.svg

{})",
      kExitCodesWithoutStrict);
}

std::string export_footer() {
  return fmt::format(
      R"(R, Julia, MATLAB and spreadsheets read the file without Python; 'poise summary' and 'poise resume' read the run itself.

  .nc   NetCDF in its classic form: posterior_x, posterior_NAME and sample_stats_lp by chain and draw
  .npz  arrays of NumPy: x, lp, the monitors, acceptance_rate, n_steps
  .csv  a row for each draw of each chain, a column for each monitor and each variable

A run that was killed, or is still under way, gives the draws that it has stored so far.

Examples:
  poise export run.zarr run.nc
  poise export run.zarr run.csv

{})",
      kExitCodesWithoutStrict);
}

std::string mmd_footer() {
  return fmt::format(
      R"(The maximum mean discrepancy of the draws, with the kernel exp(-d / number of variables), where d is the number of
variables that differ: over all pairs of draws (V) and over pairs of different draws (U, which has no bias).

The p-value is the share of random splits of the pooled draws that are as far apart as the two runs; it is small when the
runs have different laws. The test assumes independent draws. So draws are taken at distances at which they are nearly
independent: two autocorrelation times of the slowest monitor, and of the distances from sixteen of the draws. With under
50 such draws there are too few to tell.

V grows as draws become fewer. To compare the distances of several runs from one, take the same number of each with --draws
and --correlated, and ignore the p-value.

Examples:
  poise mmd a.zarr b.zarr
  poise mmd a.zarr b.zarr --draws 2000 --permutations 10000 --json - | jq .p_value

{})",
      kExitCodesWithoutStrict);
}

std::string marginals_footer() {
  return fmt::format(R"(Models are networks, FILE.uai or FILE.bif, and all built-in models but rbm.
The answer is exact if the tables of a junction tree fit --memory and the time; tables that are too large are solved in
slices, one for each combination of levels of a few variables. Otherwise pilot runs compare a few samplers, and the one with
the smallest error per second samples for what is left of --seconds. Pilots go by the clock, so two runs may choose differently.

Each sampled marginal has a standard error. A level that n effective draws never saw has the error 1/n, so that three errors
are the rule of three. Warnings say where chains disagree or are stuck. The output says what was done and why.

--evidence takes a file, or names and levels between commas. --query lung,smoke gives the probability of every combination
of levels of these variables: exact if a junction tree that joins them fits, else from draws with standard errors. For a
Bayesian network with evidence, Z is P(evidence).

Examples:
  poise marginals net.uai --evidence net.uai.evid --out net.MAR
  poise marginals asia.bif --evidence xray=yes,dysp=yes --csv -
  poise marginals asia.bif --evidence xray=yes --query lung,smoke
  poise marginals asia.bif --method sample --seconds 2
  poise marginals net.uai --json - --quiet | jq .warnings

{})",
                     kExitCodes);
}

std::string select_footer() {
  return fmt::format(
      R"(The model is y = X b + e. A variable is included with a prior probability; an included one has a normal coefficient.
Coefficients and residual variance are integrated out. By default the prior probability is 1 / number of variables, and a
coefficient has 0.2 of the residual variance, in standard deviations of its column. Reported coefficients and intervals are
in units of the table.

Chains start from the empty set, from a greedy search, and at random; a warning says where they disagree. There is no
logistic regression: a response of zeros and ones is treated as numbers.

Examples:
  poise select data.csv --response y
  poise select data.csv --response y --beta-a 1 --beta-b 10 --slab g --always age,sex
  poise select data.csv --response y --predict new.csv --predictions predicted.csv
  poise select data.csv --response y --plot inclusion.svg
  poise sample selection:data=data.csv,response=y --sampler temper

{})",
      kExitCodes);
}

std::string finemap_footer() {
  return fmt::format(
      R"(Fine-mapping from z scores, their correlations R, and the sample size. Without --n effects are assumed to be small, and
coefficients have a variance of 50 on the scale of z. A credible set is a small group of variants, all correlated by at
least --purity, of which one is included with posterior probability --coverage. A master file also names the output tables in
the format of FINEMAP: .snp, .config and .cred. Warnings name z scores that do not go with R, and alleles that seem flipped.

Examples:
  poise finemap --z locus.z --ld locus.ld --n 50000 --out locus.tsv --plot locus.svg
  poise finemap --z z.txt --ld R.npy --n 50000 --json - --quiet | jq .sets
  poise finemap --master data.master

{})",
      kExitCodes);
}

std::string exact_footer() {
  return fmt::format(
      R"(Exact marginals by a junction tree. A better elimination order is searched for as long as that pays. Memory and time are
known before tables are built. If the tables exceed --memory, the program conditions on a few variables and solves one
tree for each combination of their levels; if that would take too long, it refuses and names the cost.

Examples:
  poise exact asia.bif
  poise exact asia.bif --evidence xray=yes --query lung,smoke
  poise exact net.uai --evidence net.uai.evid --out net.MAR
  poise exact ising:size=8,lambda=0.4
  poise exact maxcut:file=graph.mc,beta=1

{})",
      kExitCodesWithoutStrict);
}

std::string info_footer() {
  return fmt::format(R"(Examples:
  poise info net.uai --evidence net.uai.evid
  poise info potts:size=10,levels=4 --json -

{})",
                     kExitCodesWithoutStrict);
}

std::string train_footer() {
  return fmt::format(
      R"(Weights are learned by contrastive divergence. The gradient is the correlation of hidden and visible units given the
images, minus the same after K steps of block Gibbs from there (cd), or in persistent chains (pcd). Shown are the mean squared
error of a reconstructed pixel and the pseudo-likelihood of an image: the sum over its pixels of log p(pixel | all others).

Ctrl-C saves what was learned so far. A training that lasts over a minute leaves FILE.checkpoint every 30 seconds, from
which 'poise resume FILE' continues after a kill, with bitwise the same weights.

Rows of an array are visible units, or its last two dimensions are the pixels of images. Numbers are 0 and 1, from 0 to 1, or
whole numbers up to 255; those between are taken for gray levels (--binarise). Of an .npz file the only array is read, or the
one named X, x, data or arr_0; a .csv file may have a line of names.

Examples:
  poise train rbm --data digits --out rbm.safetensors
  poise train rbm --data X.npy --hidden 100 --binarise sample --out rbm.npz
  poise train rbm --data mnist/ --hidden 250 --out rbm.safetensors
  poise train rbm --data train-images-idx3-ubyte.gz --method pcd --epochs 10 --rate 3e-4 --out rbm.npz --json rbm.json

Exit codes: 0 success; 1 failure while running; 2 bad usage or input, nothing written; 130 interrupted (Ctrl-C), what
was learned is saved.)");
}

std::string logz_footer() {
  return fmt::format(
      R"(Z of a network is the sum, over all states that agree with the evidence, of the product of its factors: for a Bayesian
network the probability of the evidence. For ising and potts it is the sum of exp(log p), for maxcut of exp(beta cut), for
qubo of exp(-beta energy), or exp(beta energy) with sense=max. A junction tree finds it if its tables fit --memory,
tempering otherwise. mcse is then the standard error of the mean over --chains ladders, widened by Student's t (by 1.65 for 4
ladders, by 7 for 2), so that two of it cover 95 %. --out writes log10 Z in the PR format of the UAI competitions.

For an RBM, annealed importance sampling takes chains from independent visible units to the RBM along evenly spaced
temperatures, and averages their weights w; mcse is the standard error of log Z. The chains are worth (sum w)^2 / sum w^2
equal ones. If that is under a tenth of them, or one weight is more than half of all, the estimate cannot be trusted; more
temperatures help more than more chains. A mode that no chain found goes unnoticed: run again with ten times the
temperatures and see whether log Z rises. If one side of the RBM has at most 25 units, its states are summed exactly and
the difference is shown. Ctrl-C reports the estimate from the chains finished so far.

Examples:
  poise logz net.uai --evidence net.uai.evid --out net.PR
  poise logz potts:size=12,levels=3 --json - | jq .log10_partition
  poise logz maxcut:file=graph.mc,beta=0.5 --method sample --chains 16
  poise logz rbm:weights=rbm.safetensors
  poise logz rbm:weights=rbm.npz --chains 1024 --temperatures 30000
  poise logz rbm:weights=small.npz --method exact --json - | jq .exact.log_partition

{})",
      kExitCodes);
}

std::string optimize_footer() {
  return fmt::format(
      R"(Finds the state with the largest cut or set, the smallest or largest energy (sense), or the largest log p, whatever beta
is. Variables with few neighbours are maximised out exactly. If nothing is left, or little enough to enumerate, the best
state is proved ("optimal" in JSON). Otherwise annealing and replica exchange search for it on all threads, for
--seconds. With --sweeps the answer depends on the seed alone.

--init has states as --out writes them: one a line, a label for each variable. --fix has lines 'variable label';
variables have names, or numbers from 0. With --out the search leaves a checkpoint beside that file when it is
interrupted, and every 30 seconds after the first minute; 'poise resume FILE' continues it. Ctrl-C gives the best state
so far.

Examples:
  poise optimize maxcut:file=graph.mc --seconds 60 --out best.txt --plot progress.svg
  poise optimize qubo:file=problem.qubo,sense=max --target 1500 --json - | jq .best.objective
  poise optimize mis:file=graph.txt --solutions 10 --json -
  poise optimize ising:graph=couplings.txt --sweeps 100000 --seed 7

{})",
      kExitCodesWithoutStrict);
}

std::string reproduce_footer() {
  return fmt::format(
      R"(Writes one report that opens without a network (report.html), the numbers (results.json, tables/*.csv) and the figures
(figures/*.svg). Each number stands beside the published one, where there is one, with its standard error.

Without --data the networks of uai are generated, rbm takes Debian's dataset-fashion-mnist, the RBMs of discs are trained on
drawn digits, and select simulates its regressions; it reads .npz files with X and Y, with XtX, Xty, yty and n, or with z,
R and n. The same seed gives the same numbers. Ctrl-C keeps the parts that are finished (parts/*.json), and the same command
continues from there.

Examples:
  poise reproduce ising
  poise reproduce uai --data uai-networks --protocol published --out uai-as-published
  poise reproduce rbm --data mnist --quick
  poise reproduce discs --data mnist
  poise reproduce select

{})",
      kExitCodesWithoutStrict);
}

std::string completions_footer() {
  return R"(They are made from the same descriptions as --help, and 'cmake --install' puts them where shells look.

Examples:
  poise completions bash > ~/.local/share/bash-completion/completions/poise
  poise completions zsh > ~/.zfunc/_poise
  poise completions fish > ~/.config/fish/completions/poise.fish)";
}

std::string man_footer() {
  return R"(They are made from the same descriptions as --help, and 'cmake --install' puts them where 'man poise-sample' looks.

Examples:
  poise man sample | man -l -
  poise man --out ~/.local/share/man)";
}

}  // namespace poise::app
