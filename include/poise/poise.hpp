/// Everything a program needs to sample: models, samplers, runs and their summaries.
#pragma once

#include <poise/diagnose/diagnose.hpp>
#include <poise/diagnose/variables.hpp>
#include <poise/report/report.hpp>
#include <poise/run/model.hpp>
#include <poise/run/run.hpp>
#include <poise/run/sampler.hpp>
