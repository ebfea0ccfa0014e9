/// What kind of terminal, if any, is at the other end of a stream, and Ctrl-C: the first asks the run to end, the
/// second ends the program.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdio>

namespace poise::app {

/// A terminal on which lines can be drawn anew.
[[nodiscard]] bool is_terminal(std::FILE* stream);

/// Columns of the terminal, or `otherwise`.
[[nodiscard]] std::size_t terminal_width(std::FILE* stream, std::size_t otherwise);

/// The width of tables on a stream: that of the terminal, within reason.
[[nodiscard]] std::size_t table_width(std::FILE* stream);

/// The width of help: that of the terminal, or what COLUMNS says, within reason.
[[nodiscard]] std::size_t help_width();

/// Whether the locale shows more than ASCII.
[[nodiscard]] bool shows_utf8();

/// Whether colours are wanted (https://no-color.org).
[[nodiscard]] bool wants_color();

/// Takes SIGINT and SIGTERM over for the rest of the program. The flag becomes true with the first of them.
const std::atomic<bool>& stop_on_interrupt();

}  // namespace poise::app
