/// Whether SVG is well-formed, and how often something stands in a text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace poise::testing {

/// Whether every tag is closed in its order and no text holds a bare '&' or '<'.
inline bool is_well_formed(const std::string& svg) {
  std::vector<std::string> open;
  for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    const std::size_t end = svg.find('>', at);
    if (end == std::string::npos || svg.find('<', at + 1) < end) return false;
    const std::string tag = svg.substr(at + 1, end - at - 1);
    const std::string name = tag.substr(0, tag.find_first_of(" />", 1));
    if (tag.front() == '/') {
      if (open.empty() || "/" + open.back() != tag) return false;
      open.pop_back();
    } else if (tag.back() != '/') {
      open.push_back(name);
    }
  }
  for (std::size_t at = svg.find('&'); at != std::string::npos; at = svg.find('&', at + 1)) {
    const std::string entity = svg.substr(at, svg.find(';', at) - at);
    if (entity != "&amp" && entity != "&lt" && entity != "&gt" && entity != "&quot") return false;
  }
  return open.empty() && svg.find("nan") == std::string::npos && svg.find("inf") == std::string::npos;
}

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace poise::testing
