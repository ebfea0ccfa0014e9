/// Everything a program needs to sample: models and networks, samplers, runs, marginals and summaries.
#pragma once

#include <poise/diagnose/diagnose.hpp>
#include <poise/diagnose/mmd.hpp>
#include <poise/diagnose/variables.hpp>
#include <poise/infer/marginals.hpp>
#include <poise/network/read.hpp>
#include <poise/report/report.hpp>
#include <poise/run/model.hpp>
#include <poise/run/own_model.hpp>
#include <poise/run/run.hpp>
#include <poise/run/sampler.hpp>
