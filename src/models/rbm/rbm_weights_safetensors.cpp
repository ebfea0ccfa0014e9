/// The safetensors format: the length of a header in 8 bytes, the header in JSON, then the numbers of all tensors.
#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <poise/extend/base/spec.hpp>
#include "models/rbm/rbm_weights.hpp"

namespace poise {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kLengthBytes = 8;
/// An RBM's header takes a few hundred bytes. In JSON a byte can cost a hundred of memory, so that there is a limit.
constexpr std::uint64_t kMaxHeaderBytes = 1 << 20;

/// Where a tensor lies in the data: bytes begin .. end - 1.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::string name;
};

class SafetensorsReader {
 public:
  SafetensorsReader(std::string_view content, std::string_view name) : content_(content), name_(name) {}

  RbmWeights read() {
    const Json header = read_header();
    for (const auto& [key, value] : header.items()) {
      if (key == "__metadata__") {
        read_metadata(value);
      } else {
        read_tensor(key, value);
      }
    }
    check_cover();
    return assemble(arrays_, name_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { refuse_rbm(name_, what); }

  Json read_header() {
    const std::string_view length_bytes = content_.substr(0, kLengthBytes);
    const std::uint64_t length = from_little_endian(length_bytes);
    if (content_.size() < kLengthBytes || length > content_.size() - kLengthBytes) {
      fail(fmt::format("found {} bytes with {} announced for a header, expected a safetensors or npz file",
                       content_.size(), length));
    }
    if (length > kMaxHeaderBytes) {
      fail(fmt::format("found a header of {} bytes, expected at most {}", length, kMaxHeaderBytes));
    }
    data_ = content_.substr(kLengthBytes + length);
    const std::string_view text = content_.substr(kLengthBytes, length);
    if (!text.starts_with('{')) {
      fail(fmt::format("found a header that begins with {}, expected a JSON object", quote(text.substr(0, 1))));
    }
    return parse_json(text);
  }

  /// JSON lets the last of equal keys win in silence; the format forbids them.
  Json parse_json(std::string_view text) const {
    std::vector<std::set<std::string>> keys;
    const auto see = [&](int, Json::parse_event_t event, Json& parsed) {
      if (event == Json::parse_event_t::object_start) keys.emplace_back();
      if (event == Json::parse_event_t::object_end) keys.pop_back();
      if (event == Json::parse_event_t::key) {
        const std::string key = parsed.get<std::string>();
        if (!keys.back().insert(key).second) {
          fail(fmt::format("found {} twice in the header, expected it once", quote(key)));
        }
      }
      return true;
    };
    try {
      return Json::parse(text, see);
    } catch (const Json::parse_error& error) {
      fail(fmt::format("found something else at byte {} of the header, expected JSON", error.byte));
    } catch (const Json::exception&) {
      fail("found a number too large in the header, expected shapes and offsets");
    }
  }

  void read_metadata(const Json& metadata) {
    if (!metadata.is_object()) fail("found '__metadata__' that is no object, expected strings by name");
    for (const auto& [key, value] : metadata.items()) {
      if (!value.is_string()) fail(fmt::format("found {} in '__metadata__' that is no string", quote(key)));
      if (key != "rows" && key != "columns") continue;
      const std::string text = value.get<std::string>();
      const auto number = parse_integer(text);
      if (!number) fail(fmt::format("found {} for '{}', expected a whole number", quote(text), key));
      (key == "rows" ? arrays_.rows : arrays_.columns) = *number;
    }
  }

  [[nodiscard]] std::vector<std::uint64_t> whole_numbers(const Json& tensor, const char* key,
                                                         const std::string& tensor_name) const {
    const auto found = tensor.find(key);
    const bool right = found != tensor.end() && found->is_array() &&
                       std::all_of(found->begin(), found->end(), [](const Json& n) { return n.is_number_unsigned(); });
    if (!right) fail(fmt::format("found no '{}' of whole numbers for {}, expected some", key, quote(tensor_name)));
    return found->get<std::vector<std::uint64_t>>();
  }

  void read_tensor(const std::string& tensor_name, const Json& tensor) {
    if (!tensor.is_object()) fail(fmt::format("found no object for {}, expected a tensor", quote(tensor_name)));
    const auto dtype = tensor.find("dtype");
    if (dtype == tensor.end() || !dtype->is_string()) {
      fail(fmt::format("found no 'dtype' for {}, expected a string", quote(tensor_name)));
    }
    FileArray array;
    array.shape = whole_numbers(tensor, "shape", tensor_name);
    const auto offsets = whole_numbers(tensor, "data_offsets", tensor_name);
    if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data_.size()) {
      fail(fmt::format("found {} as 'data_offsets' of {}, expected [begin, end] within {} bytes of data",
                       shape_text(offsets), quote(tensor_name), data_.size()));
    }
    extents_.push_back({offsets[0], offsets[1], tensor_name});
    std::optional<FileArray>* place = array_named(arrays_, tensor_name);
    if (place == nullptr) return;
    const std::string type = dtype->get<std::string>();
    if (type != "F32" && type != "F64") {
      fail(fmt::format("found {} as 'dtype' of {}, expected F32 or F64", quote(type), quote(tensor_name)));
    }
    array.number_bytes = type == "F32" ? 4 : 8;
    array.bytes = data_.substr(offsets[0], offsets[1] - offsets[0]);
    if (bytes_of(array.shape, array.number_bytes) != array.bytes.size()) {
      fail(fmt::format("found {} bytes for {} of shape {} and type {}, expected as many as these call for",
                       array.bytes.size(), quote(tensor_name), shape_text(array.shape), type));
    }
    *place = array;
  }

  /// Tensors lie one after the other without a gap, from the first byte of the data to the last.
  void check_cover() {
    std::sort(extents_.begin(), extents_.end(),
              [](const Extent& a, const Extent& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
    std::uint64_t at = 0;
    for (const Extent& extent : extents_) {
      if (extent.begin != at) {
        fail(fmt::format("found {} at byte {} of the data, expected it at {}, where the one before it ends",
                         quote(extent.name), extent.begin, at));
      }
      at = extent.end;
    }
    if (at != data_.size()) {
      fail(fmt::format("found {} bytes after the last tensor, expected none", data_.size() - at));
    }
  }

  std::string_view content_;
  std::string_view name_;
  std::string_view data_;
  FileArrays arrays_;
  std::vector<Extent> extents_;
};

}  // namespace

RbmWeights parse_safetensors(std::string_view content, std::string_view name) {
  return SafetensorsReader(content, name).read();
}

std::string safetensors_bytes(const RbmWeights& rbm) {
  Json header = Json::object();
  std::string data;
  data.reserve(sizeof(float) * (rbm.weights.size() + rbm.visible_bias.size() + rbm.hidden_bias.size()));
  const auto add = [&](std::string_view tensor_name, const std::vector<std::uint64_t>& shape,
                       const std::vector<float>& values) {
    const std::size_t begin = data.size();
    data += bytes_view(values);
    header[std::string(tensor_name)] = {{"dtype", "F32"}, {"shape", shape}, {"data_offsets", {begin, data.size()}}};
  };
  add("weights", {rbm.hidden, rbm.visible}, rbm.weights);
  add("visible_bias", {rbm.visible}, rbm.visible_bias);
  add("hidden_bias", {rbm.hidden}, rbm.hidden_bias);
  if (!rbm.visible_rates.empty()) add("visible_rates", {rbm.visible}, rbm.visible_rates);
  header["__metadata__"] = {{"kind", "restricted Boltzmann machine"}};
  if (rbm.rows > 0) {
    header["__metadata__"]["rows"] = std::to_string(rbm.rows);
    header["__metadata__"]["columns"] = std::to_string(rbm.columns);
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');  // so that the numbers begin at a multiple of 8
  return little_endian(text.size(), kLengthBytes) + text + data;
}

}  // namespace poise
