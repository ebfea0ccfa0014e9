/// A stored run as one file for other programs: NetCDF for R, Julia and MATLAB, npz for NumPy, csv for anything.
#pragma once

#include <string>

namespace poise {

/// Throws an InputError where the ending of `file` is not .nc, .npz or .csv, or where nothing can be written there.
void check_export_name(const std::string& file);

/// Writes the draws that a finished, growing or killed run has now. It takes the memory of one batch of draws, however
/// long the run is. Whatever happens, `file` is the old one or the new one as a whole. Throws an InputError where the
/// run or the name of the file is wrong, and a std::runtime_error where the disk is.
void export_run(const std::string& run, const std::string& file);

}  // namespace poise
