/// Everything a program needs to sample: models and networks, samplers, runs, marginals and summaries.
#pragma once

#include <poise/diagnose.hpp>
#include <poise/mmd.hpp>
#include <poise/variables.hpp>
#include <poise/marginals.hpp>
#include <poise/read_network.hpp>
#include <poise/report.hpp>
#include <poise/model.hpp>
#include <poise/extend/engines/own_model.hpp>
#include <poise/run.hpp>
#include <poise/sampler.hpp>
