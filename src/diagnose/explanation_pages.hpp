/// The pages of docs/warnings as cmake/explanations.cmake builds them in.
#pragma once

#include <string_view>
#include <vector>

namespace poise::diagnose_detail {

struct ExplanationPage {
  std::string_view code;  ///< of the warning, and the name of the page
  std::string_view text;  ///< Markdown
};

/// In alphabetical order of their codes.
[[nodiscard]] const std::vector<ExplanationPage>& explanation_pages();

}  // namespace poise::diagnose_detail
