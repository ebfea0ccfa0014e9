/// Panels of pictures: small images inside an SVG document.
#include <algorithm>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

#include <poise/plot.hpp>

#include "report/svg_text.hpp"

namespace poise {

namespace {

using namespace svg;

std::string base64(std::string_view bytes) {
  static constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const auto byte = [&](std::size_t k) {
      return at + k < bytes.size() ? static_cast<unsigned>(static_cast<unsigned char>(bytes[at + k])) : 0U;
    };
    const unsigned group = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (unsigned k = 0; k < 4; ++k) {
      out += at + k <= bytes.size() ? digits[group >> (18 - 6 * k) & 63U] : '=';
    }
  }
  return out;
}

}  // namespace

std::string render_panel(const PicturePanel& panel) {
  if (panel.pictures.empty() || panel.per_row == 0)
    throw std::invalid_argument("render_panel: a panel without pictures");
  constexpr double gap = 14;
  constexpr double caption = 22;
  const double top = panel.title.empty() ? 8 : 34;
  const std::size_t columns = std::min(panel.per_row, panel.pictures.size());
  const std::size_t rows = (panel.pictures.size() + columns - 1) / columns;
  double tallest = 0;
  for (const Picture& picture : panel.pictures) {
    tallest = std::max(
        tallest, panel.side * static_cast<double>(picture.image.height) / static_cast<double>(picture.image.width));
  }
  const double width = static_cast<double>(columns) * (panel.side + gap) + gap;
  const double height = top + static_cast<double>(rows) * (tallest + caption + 6);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" role=\"img\" "
      "font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\" fill=\"#222222\">\n<title>{2}</title>\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
      coordinate(width), coordinate(height), escaped(panel.title.empty() ? "pictures" : panel.title));
  if (!panel.title.empty()) {
    out +=
        fmt::format("<text x=\"{}\" y=\"22\" text-anchor=\"middle\" font-size=\"15\" font-weight=\"bold\">{}</text>\n",
                    coordinate(width / 2), escaped(panel.title));
  }
  for (std::size_t i = 0; i < panel.pictures.size(); ++i) {
    const Picture& picture = panel.pictures[i];
    const double x = gap + static_cast<double>(i % columns) * (panel.side + gap);
    const std::size_t row = i / columns;
    const double y = top + static_cast<double>(row) * (tallest + caption + 6);
    out += fmt::format(
        "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" "
        "style=\"image-rendering:pixelated\" href=\"data:image/png;base64,{}\"/>\n",
        coordinate(x), coordinate(y), coordinate(panel.side), coordinate(tallest), base64(png_bytes(picture.image)));
    out += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" font-size=\"12\">{}</text>\n",
                       coordinate(x + panel.side / 2), coordinate(y + tallest + 15), escaped(picture.caption));
  }
  return out + "</svg>\n";
}

}  // namespace poise
