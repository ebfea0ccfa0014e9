# Writes tests/data/posterior.json, what the R package posterior says of fixed series: Rscript tests/oracle/posterior.R
suppressMessages({library(posterior); library(jsonlite)})
options(warn = -1)
RNGversion("4.0.0")
set.seed(20210)

ar1 <- function(n, chains, rho) {
  sapply(seq_len(chains), function(chain) {
    as.numeric(stats::filter(rnorm(n, sd = sqrt(1 - rho^2)), rho, method = "recursive", init = rnorm(1)))
  })
}
matrix_of <- function(draw, n, chains) matrix(draw(n * chains), n, chains)
markov_bits <- function(n, chains, up, down) {
  sapply(seq_len(chains), function(chain) {
    x <- rbinom(1, 1, up / (up + down))
    for (i in 2:n) x[i] <- if (x[i - 1] == 0) rbinom(1, 1, up) else 1 - rbinom(1, 1, down)
    x
  })
}
excursion <- function(n, chains) { x <- matrix(0, n, chains); x[n %/% 3, 2] <- 1; x }

cases <- list(
  iid_normal = matrix_of(rnorm, 200, 4),
  iid_normal_odd = matrix_of(rnorm, 101, 4),
  single_chain = matrix_of(rnorm, 150, 1),
  many_chains = matrix_of(rnorm, 20, 32),
  ar1_half = ar1(250, 4, 0.5),
  ar1_slow = ar1(250, 4, 0.95),
  ar1_odd_single = ar1(333, 1, 0.9),
  ar1_very_slow = round(ar1(1200, 1, 0.997), 3),
  antithetic = ar1(150, 4, -0.7),
  antithetic_strong = ar1(101, 2, -0.95),
  alternating = matrix(rep(c(-1, 1), 20), 40, 4),
  shifted_chain = sweep(matrix_of(rnorm, 120, 4), 2, c(0, 0, 0, 2), "+"),
  scaled_chain = sweep(matrix_of(rnorm, 120, 4), 2, c(1, 1, 1, 4), "*"),
  large_offset = ar1(100, 3, 0.6) - 1e6,
  cauchy = matrix_of(rcauchy, 150, 4),
  cubed = ar1(150, 4, 0.8)^3,
  poisson = matrix_of(function(k) rpois(k, 2), 200, 4),
  poisson_odd = matrix_of(function(k) rpois(k, 1), 77, 3),
  random_walk_integers = apply(matrix_of(function(k) sample(c(-1, 1), k, TRUE), 300, 4), 2, cumsum),
  three_values = matrix_of(function(k) sample(c(-1, 0, 1), k, TRUE, c(0.3, 0.5, 0.2)), 100, 4),
  three_values_top_heavy = matrix_of(function(k) sample(0:2, k, TRUE, c(0.02, 0.08, 0.9)), 200, 4),
  bits = matrix_of(function(k) rbinom(k, 1, 0.3), 200, 4),
  bits_odd = matrix_of(function(k) rbinom(k, 1, 0.6), 137, 3),
  bits_sticky = markov_bits(500, 4, 0.03, 0.05),
  bits_balanced = matrix(sample(rep(c(0, 1), 200)), 100, 4),
  bits_skewed = matrix_of(function(k) rbinom(k, 1, 0.98), 200, 4),
  bits_excursion = excursion(1000, 4),
  bits_middle_dropped = {x <- matrix(0, 21, 2); x[11, 1] <- 1; x},
  bits_one_chain_frozen = {x <- matrix_of(function(k) rbinom(k, 1, 0.5), 100, 3); x[, 2] <- 1; x},
  constant = matrix(3.7, 30, 4),
  constant_per_chain = matrix(rep(c(0.1, 0.7, 1, 0.3), each = 30), 30, 4),
  constant_per_chain_bits = matrix(rep(c(0, 1, 1, 1), each = 30), 30, 4),
  one_infinite = {x <- matrix_of(rnorm, 60, 4); x[3, 2] <- -Inf; x},
  mostly_infinite = {x <- matrix_of(rnorm, 60, 4); x[, 1:3] <- -Inf; x[5, 1] <- 0; x},
  not_a_number = {x <- matrix_of(rnorm, 20, 4); x[3, 2] <- NaN; x}
)
for (n in c(4:14)) cases[[paste0("short_", n)]] <- matrix_of(rnorm, n, 4)
for (n in c(5, 8, 12)) cases[[paste0("short_single_", n)]] <- matrix_of(rnorm, n, 1)
spins <- 2 * cases$bits_sticky - 1
cases$spins_sticky <- spins

# Seventeen digits for everything that is not a short number; what JSON cannot say (NA, infinities) goes as a string.
number <- function(x) {
  vapply(seq_along(x), function(i) {
    if (is.nan(x[i]) || is.na(x[i])) "\"nan\""
    else if (is.infinite(x[i])) if (x[i] > 0) "\"inf\"" else "\"-inf\""
    else if (x[i] == round(x[i], 3) && abs(x[i]) < 1e6) format(x[i], digits = 15)
    else sprintf("%.17g", x[i])
  }, "")
}
records <- vapply(names(cases), function(name) {
  x <- cases[[name]]
  # R-hat of the bulk alone: what remains where the folded part is undefined.
  bulk_r_hat <- posterior:::.rhat(posterior:::z_scale(posterior:::.split_chains(x)))
  expected <- c(r_hat = rhat(x), bulk_r_hat = bulk_r_hat, ess_bulk = ess_bulk(x), ess_tail = ess_tail(x),
                ess_mean = ess_mean(x), mcse_mean = mcse_mean(x), mcse_sd = mcse_sd(x))
  first_lags <- tryCatch(head(posterior::autocorrelation(x[, 1]), 8), error = function(e) numeric())
  sprintf('{"name":"%s","chains":%d,"draws":%d,\n"expected":{%s},\n"autocorrelation":[%s],\n"values":[%s]}',
          name, ncol(x), nrow(x), paste0('"', names(expected), '":', number(expected), collapse = ","),
          paste(number(first_lags), collapse = ","), paste(number(as.vector(x)), collapse = ","))
}, "")
text <- sprintf('{"posterior":"%s","cases":[\n%s\n]}', packageVersion("posterior"), paste(records, collapse = ",\n"))
stopifnot(validate(text))

directory <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)))
writeLines(text, file.path(directory, "..", "data", "posterior.json"))
