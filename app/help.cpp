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
    coupling=1         of neighbours; lambda, as in the paper, is the same
    beta=1             coupling and field are multiplied by it; T is one over beta
    mu=0, sigma=0      strength of the true image and of the noise
    field=uniform      alpha = s mu + U(-sigma, sigma), or gaussian: y mu / sigma^2, y = s mu + sigma N(0, 1)
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
    sigma=2, seed=1        noise, and seed of all that is drawn
  Keys of selection: data=FILE, response=y, or z=FILE, ld=FILE, n=N; inclusion, beta-a, beta-b,
    slab=independent or g, slab-variance, residual-variance, scaling=standard, centre or none
  Keys of maxcut: file=FILE, beta=1 or T=1; of qubo: file=FILE, beta=1 or T=1, sense=min or max, offset=0
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
Memory does not grow with --draws. With --out all draws are on the disk; what exceeds --memory is only there, and is
diagnosed from there. Without it, states that would exceed --memory are not kept, which is said before the run starts.

Examples:
  poise sample ising:case=4
  poise sample ising:size=64,coupling=0.4 --sampler gibbs --draws 5000 --out run.zarr
  poise sample net.uai --evidence net.uai.evid --sampler gibbs --json net.json
  poise sample ising:lambda=0.6 --field noisy.png --sampler lsb --images out.png --report run.html
  poise sample ising:case=3 --quiet --json - | jq .monitors.log_prob
  mpirun -n 8 poise sample ising:size=256,lambda=0.44 --chains 64 --out run.zarr

Started by mpirun or srun, ranks divide the chains among them; draws, store and summary are those of one process. Each has
as many threads as its share of the cores, unless --threads says how many.

{})",
                     models(), samplers(), kExitCodes);
}

std::string resume_footer() {
  return fmt::format(
      R"(A run with --out leaves a checkpoint every 30 seconds once it has lasted a minute (--checkpoint: from the start), and
when it is interrupted, inside RUN.zarr. It is resumed from there with the same model, sampler and options, and has
bitwise the draws of a run that was never stopped.
--draws N extends a finished run to N draws per chain, identical to a run started with N; where auto chose the sampler,
its choice stays. The files of the model must be unchanged. The number of threads and of ranks (mpirun, srun) may differ.
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
      R"(The run may be larger than memory: it is read part by part. Where a single series does not fit --memory, one draw in so
many is looked at, which a note says; effective sample sizes are then lower bounds.

Examples:
  poise summary run.zarr
  poise summary run.zarr --json - | jq .warnings

{})",
      kExitCodes);
}

std::string scan_footer() {
  return fmt::format(
      R"(The key is one of the model's. Spin models report their observables, other models the means of their monitors, each with
its standard error. Where the parameter multiplies log p (beta, T, a coupling without field) all points are one run, a
replica exchange: neighbours swap states, which carries chains over barriers, and errors of neighbouring points are
correlated by what is said below the table and in JSON. The sampler then is sw where there are clusters, else gibbs, or any
one that does not adapt itself. With --exchange no, and for other parameters and samplers, points run at the same time, one
on each thread, with random numbers of their own and independent errors. --seconds is for all points together. With --json
FILE a scan that was killed is continued by the same command; where points are independent, one with more values runs those
that are missing.

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
      R"(The page needs no other file and no network: what was run, warnings with what to type next, tables that sort, traces,
rank histograms, autocorrelations, and the means of a lattice. 'poise sample --report' makes it when the run ends.

Examples:
  poise report run.zarr
  poise report run.zarr --out page.html --plot pictures.svg

{})",
      kExitCodes);
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
      kExitCodes);
}

std::string mmd_footer() {
  return fmt::format(
      R"(The maximum mean discrepancy of the draws, with the kernel exp(-d / number of variables), d being the number of
variables that differ: over all pairs of draws (V) and over pairs of different draws (U, which has no bias).

The p-value says how often random splits of the pooled draws are as far apart as the two runs: it is small when they
have different laws. Such a test holds for independent draws, and those of a chain are not. So draws are taken at
distances at which they are nearly so, two autocorrelation times of the slowest of the monitors and of the distances
from sixteen of the draws, and the test holds nearly. Where that leaves under 50 draws they are too few to tell.
V grows as draws become fewer: to compare the distances of several runs from one, take the same number of each with
--draws and --correlated, and leave the p-value aside.

Examples:
  poise mmd a.zarr b.zarr
  poise mmd a.zarr b.zarr --draws 2000 --permutations 10000 --json - | jq .p_value

{})",
      kExitCodes);
}

std::string marginals_footer() {
  return fmt::format(R"(Models are networks: FILE.uai or FILE.bif, and all others but rbm.
Where the tables of a junction tree fit --memory, if need be in slices (one tree for each combination of levels of a few
variables), and the time allows it, the answer is exact. Elsewhere a pilot run of a few samplers finds the one with the
smallest error per second by the clock, so two runs may choose differently; it samples for what is left of --seconds. The
error of every marginal is estimated: that of a level which n effective draws never saw is 1/n, so that three errors are the
rule of three. Warnings say where the chains disagree or are stuck. What was done and why is in the output.

--evidence takes a file, or names and levels between commas; what holds a '=' and is no file that exists is of the second
kind. --query lung,smoke gives the probability of every combination of levels of these variables: exact where a junction
tree that joins them fits, else from draws with standard errors. Of a Bayesian network with evidence, Z is P(evidence).

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
      R"(y = X b + e: a variable is included with a prior probability, an included one has a normal coefficient, and coefficients
and the variance of residuals are integrated out. By default a variable is included with probability 1 / number of variables,
and its coefficient has 0.2 of the variance of residuals, columns being divided by their standard deviations. Coefficients
and their intervals are in units of the table. Chains start from nothing, from what greedy addition finds, and at random;
a warning says where they disagree. There is no logistic regression: a response of zeros and ones is treated as numbers.

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
      R"(Fine-mapping from z scores, their correlations R, and the sample size. Without --n effects are taken to be small, and
coefficients have a variance of 50 on the scale of z. A credible set is a smallest group of variants, all correlated by
--purity at least, of which one is included with posterior probability --coverage. A master file also says where tables in
the form of FINEMAP go: .snp, .config and .cred. Warnings name z scores that do not go with R, and alleles that seem flipped.

Examples:
  poise finemap --z locus.z --ld locus.ld --n 50000 --out locus.tsv --plot locus.svg
  poise finemap --z z.txt --ld R.npy --n 50000 --json - --quiet | jq .sets
  poise finemap --master data.master

{})",
      kExitCodes);
}

std::string exact_footer() {
  return fmt::format(
      R"(A junction tree over an elimination order that is searched for as long as it pays. Memory and time are known before
it is built. Where the tables exceed --memory, a few variables are conditioned on, and one tree is made for each
combination of their levels; where that would take too long, the program refuses and names the cost.

Examples:
  poise exact asia.bif
  poise exact asia.bif --evidence xray=yes --query lung,smoke
  poise exact net.uai --evidence net.uai.evid --out net.MAR
  poise exact ising:size=8,lambda=0.4
  poise exact maxcut:file=graph.mc,beta=1

{})",
      kExitCodes);
}

std::string info_footer() {
  return fmt::format(R"(Examples:
  poise info net.uai --evidence net.uai.evid
  poise info potts:size=10,levels=4 --json -

{})",
                     kExitCodes);
}

std::string train_footer() {
  return fmt::format(
      R"(Weights are learned by contrastive divergence: the gradient is what hidden and visible units do together given
the images, minus the same after K steps of block Gibbs from there (cd), or in chains that are kept (pcd). Shown are the
mean squared error of a reconstructed pixel and the pseudo-likelihood of an image, the sum over its pixels of
log p(pixel | all others). Ctrl-C saves what was learned so far. A training that lasts over a minute leaves FILE.checkpoint
every 30 seconds, from which 'poise resume FILE' continues after a kill, to bitwise the same weights.

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
      R"(Z of a network is the sum of the product of its factors over all states that agree with the evidence: of a
Bayesian network the probability of the evidence, of ising and potts the sum of exp(log p), of maxcut that of
exp(beta cut), of qubo that of exp(-beta energy), or exp(beta energy) with sense=max. It is found by a junction tree where
its tables fit the memory, else by tempering; mcse is then the standard error of the mean over --chains ladders, widened by
Student's t where these are few (by 1.65 for 4, by 7 for 2), so that two of it cover 95 %. --out writes log10 Z as the PR
task of the UAI competitions has it.

Of an RBM, annealed importance sampling takes chains from independent visible units to the RBM, along evenly spaced
temperatures, and averages their weights; mcse is the standard error of log Z. The chains are worth (sum w)^2 / sum w^2
equal ones: where that is under a tenth of them, or one weight is more than half of all, the estimate cannot be trusted,
and more temperatures help more than more chains. A mode that no chain found goes unnoticed: run again with ten times
the temperatures to see whether log Z rises. Where a side of the RBM has at most 25 units its states are summed
one by one, and the difference is shown. Ctrl-C shows what the chains that are through say.

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
      R"(Finds the state with the largest cut or size, the smallest or largest energy (sense), or the largest log p,
whatever beta is. Variables with few neighbours are maximised out exactly; where nothing is left, or little enough to
enumerate, the best state is proved ("optimal" in JSON). Elsewhere annealing and replica exchange search it, on all
threads with --seconds. With --sweeps the answer depends on the seed alone.

--init has states as --out writes them: one a line, a label for each variable. --fix has lines 'variable label'. With
--out the search leaves a checkpoint beside that file after a minute, then every 30 seconds, and when it is interrupted;
'poise resume FILE' continues it. Ctrl-C shows the best so far.

Examples:
  poise optimize maxcut:file=graph.mc --seconds 60 --out best.txt --plot progress.svg
  poise optimize qubo:file=problem.qubo,sense=max --target 1500 --json - | jq .best.objective
  poise optimize mis:file=graph.txt --solutions 10 --json -
  poise optimize ising:graph=couplings.txt --sweeps 100000 --seed 7

{})",
      kExitCodes);
}

std::string reproduce_footer() {
  return fmt::format(
      R"(Writes one report that opens without a network (report.html), the numbers (results.json, tables/*.csv) and the
figures (figures/*.svg), each number beside the paper's own, where there is one, with its standard error. Without --data
the networks of uai are generated here, rbm takes Debian's dataset-fashion-mnist, the RBMs of discs are trained on drawn
digits, and select simulates its regressions; it reads .npz files with X and Y, with XtX, Xty, yty and n, or with z, R and
n. The same seed gives the same numbers. Ctrl-C keeps the parts that are finished (parts/*.json), and the same command continues
from there.

Examples:
  poise reproduce ising
  poise reproduce uai --data uai-networks --protocol published --out uai-as-published
  poise reproduce rbm --data mnist --quick
  poise reproduce discs --data mnist
  poise reproduce select

{})",
      kExitCodes);
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
