# Builds the pages of docs/warnings into the library, so that `poise explain` and the site have one text.
file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/warnings/*.md)
list(FILTER pages EXCLUDE REGEX "/index\\.md$")
if(NOT pages)
  message(FATAL_ERROR "docs/warnings has no pages: the source tree is not whole")
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${pages})
set(rows "")
foreach(page ${pages})
  get_filename_component(code ${page} NAME_WE)
  file(READ ${page} text)
  string(APPEND rows "    {\"${code}\", R\"page(${text})page\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/explanation_pages.cpp @ONLY CONTENT
[[/// Generated from docs/warnings.
#include "diagnose/explanation_pages.hpp"

namespace poise::diagnose_detail {

const std::vector<ExplanationPage>& explanation_pages() {
  static const std::vector<ExplanationPage> pages = {
@rows@  };
  return pages;
}

}  // namespace poise::diagnose_detail
]])
target_sources(poise_diagnose PRIVATE ${PROJECT_BINARY_DIR}/explanation_pages.cpp)
