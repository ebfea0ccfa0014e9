/// Everything a program needs to sample: models and networks, samplers, runs, marginals and summaries.
///
/// What the program adds itself, a target or a kernel of its own, is written against `poise/extend/`:
/// `poise/extend/engines/own_model.hpp` turns a target into a Model. Those headers instantiate kernels and are not
/// included here.
///
/// How all of the public API behaves:
///
/// *Errors.* Wrong input (a file, a spec, an option) throws InputError, whose message is one sentence that names the
/// file, line or option, what was found and what was expected. Anything else that fails (memory, disk, a GPU) throws
/// another std::exception. An object whose constructor or function threw has not begun the work it refused; a run that
/// threw keeps the draws its sink was given. An exception from user code comes out of the call that ran it, as it is.
/// A log p of NaN is an error; minus infinity is legal.
///
/// *Threads.* Functions that take options use `options.threads` threads of their own (0: one per core) and return when
/// these are done; results do not depend on how many there are. Const members of one object may be called from several
/// threads at a time; calls that change an object may not. Models, samplers and options are values: copies share what
/// never changes, and may be used on different threads. Callbacks (progress, sinks) are called on the thread that made
/// the call, never two at a time, and may set the `stop` flag that ends a run early. A callback target is called on
/// that thread too; a C++ target of your own is called from all threads at once, through const members.
#pragma once

#include <poise/diagnose.hpp>
#include <poise/log_partition.hpp>
#include <poise/marginals.hpp>
#include <poise/mmd.hpp>
#include <poise/model.hpp>
#include <poise/network.hpp>
#include <poise/optimize.hpp>
#include <poise/report.hpp>
#include <poise/run.hpp>
#include <poise/sampler.hpp>
#include <poise/selection.hpp>
#include <poise/session.hpp>
