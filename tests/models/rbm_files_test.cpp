/// Files of restricted Boltzmann machines: what is written is read, what is malformed is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "models/rbm/rbm_weights.hpp"
#include "support/bytes.hpp"

namespace poise::rbm_files_test {

using testing::crc;
using testing::deflated;
using testing::expect_refusals;
using testing::little;
using testing::refusal;
using testing::TemporaryFile;
using testing::TemporaryFolder;
using testing::with;

/// Numbers as files have them; the machine that runs the tests keeps them the same way.
template <class Number>
std::string raw(const std::vector<Number>& values) {
  std::string bytes(values.size() * sizeof(Number), '\0');
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

RbmWeights small_rbm() {
  RbmWeights rbm;
  rbm.visible = 6;
  rbm.hidden = 2;
  rbm.weights = {1, -2, 0.5F, 0, 3e-40F, 4, 5, 6, 7, 8, 9, std::numeric_limits<float>::max()};
  rbm.visible_bias = {0.1F, 0.2F, 0.3F, 0.4F, 0.5F, -0.6F};
  rbm.hidden_bias = {-1, 1.5F};
  return rbm;
}

TEST(RbmFileTest, ReadsWhatItWrites) {
  const TemporaryFolder folder;
  RbmWeights rbm = small_rbm();
  for (const Index rows : {0U, 3U}) {
    rbm.rows = rows;
    rbm.columns = rows == 0 ? 0 : 2;
    if (rows > 0) rbm.visible_rates = {0.0F, 0.25F, 0.5F, 1.0F, 0.125F, 1e-3F};
    for (const char* name : {"a.safetensors", "a.npz", "b.NPZ"}) {
      write_rbm(folder.file(name), rbm);
      EXPECT_EQ(read_rbm(folder.file(name)), rbm) << name;
    }
    std::filesystem::rename(folder.file("a.npz"), folder.file("c.safetensors"));  // content counts, not the name
    EXPECT_EQ(read_rbm(folder.file("c.safetensors")), rbm);
  }
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 3U);  // and nothing half written beside them
}

TEST(RbmFileTest, RefusesRatesThatAreNone) {
  const TemporaryFolder folder;
  RbmWeights rbm = small_rbm();
  rbm.visible_rates = {0.0F, 0.25F, 0.5F, 1.5F, 0.125F, 1.0F};
  for (const char* name : {"a.safetensors", "a.npz"}) {
    write_rbm(folder.file(name), rbm);
    try {
      static_cast<void>(read_rbm(folder.file(name)));
      ADD_FAILURE() << name;
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("found a unit that is on at a rate of 1.5"), std::string::npos);
    }
  }
}

TEST(RbmFileTest, RefusesToWrite) {
  const TemporaryFolder folder;
  RbmWeights rbm = small_rbm();
  const auto attempt = [&](const std::string& path) { return refusal([&] { write_rbm(path, rbm); }); };
  EXPECT_NE(attempt(folder.file("a.pt")).find("expected .safetensors or .npz"), std::string::npos);
  EXPECT_NE(attempt(folder.file("npz")).find("expected .safetensors or .npz"), std::string::npos);
  EXPECT_TRUE(attempt("/no/such/folder/a.npz").starts_with("Cannot write /no/such/folder/a.npz: "));
  rbm.weights[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_NE(attempt(folder.file("a.npz")).find("not finite"), std::string::npos);
  rbm.weights.pop_back();
  EXPECT_THROW(write_rbm(folder.file("a.npz"), rbm), std::invalid_argument);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(RbmFileTest, RefusesOtherFiles) {
  expect_refusals(
      {
          {"", "found an empty file"},
          {"PK", "found 2 bytes with 19280 announced for a header, expected a safetensors or npz file"},
          {"some text that is no such file", "expected a safetensors or npz file"},
          {"PK\x03\x04 and then no zip directory", "without a zip directory at their end"},
      },
      [](const std::string& content) {
        const TemporaryFile file(content);
        try {
          (void)read_rbm(file.path());
        } catch (const InputError& error) {
          const std::string sentence = error.what();
          ASSERT_TRUE(sentence.starts_with(file.path()));
          throw InputError("file" + sentence.substr(file.path().size()));
        }
      });
  EXPECT_NE(refusal([] { (void)read_rbm("no/such/file"); }).find("cannot be opened"), std::string::npos);
}

std::string safetensors(const std::string& header, const std::string& data) {
  return little(header.size(), 8) + header + data;
}

std::string tensor(const std::string& name, const std::string& type, const std::string& shape, int begin, int end) {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":[{},{}]}})", name, type, shape, begin, end);
}

TEST(SafetensorsTest, ReadsDoublesAndLeavesTheRestAlone) {
  const std::string data = "xyz" + raw<double>({1, 2}) + raw<float>({3, 4}) + raw<double>({5});
  const std::string header = "{" + tensor("hidden_bias", "F64", "[1]", 27, 35) + ", " +
                             tensor("epoch", "U8", "[3]", 0, 3) + "," + tensor("weights", "F64", "[1, 2]", 3, 19) +
                             "," + tensor("visible_bias", "F32", "[2]", 19, 27) +
                             R"(, "__metadata__": {"rows": "1", "columns": "2", "by": "hand"}}   )";
  EXPECT_EQ(parse_safetensors(safetensors(header, data), "file"), (RbmWeights{2, 1, {1, 2}, {3, 4}, {5}, 1, 2}));
}

TEST(SafetensorsTest, RefusesWhatIsMalformed) {
  const std::string data = raw<float>({1, 2, 3, 4, 5});
  const std::string weights = tensor("weights", "F32", "[1,2]", 0, 8);
  const std::string visible = tensor("visible_bias", "F32", "[2]", 8, 16);
  const std::string hidden = tensor("hidden_bias", "F32", "[1]", 16, 20);
  const auto file = [&](const std::string& w, const std::string& v, const std::string& h,
                        const std::string& more = "") {
    return safetensors("{" + w + "," + v + "," + h + more + "}", data);
  };
  const std::string good = file(weights, visible, hidden);
  EXPECT_EQ(parse_safetensors(good, "file"), (RbmWeights{2, 1, {1, 2}, {3, 4}, {5}}));
  const auto meta = [&](const std::string& text) {
    return file(weights, visible, hidden, ",\"__metadata__\":" + text);
  };
  const float infinite = std::numeric_limits<float>::infinity();
  expect_refusals(
      {
          {good.substr(0, 7), "expected a safetensors or npz file"},
          {little(good.size() - 7, 8) + good.substr(8), "announced for a header"},
          {little(~0ULL, 8) + good.substr(8), "announced for a header"},
          {safetensors(std::string(2 << 20, ' '), ""), "found a header of 2097152 bytes, expected at most 1048576"},
          {safetensors("", data), "expected a JSON object"},
          {safetensors("[]", data), "found a header that begins with '[', expected a JSON object"},
          {safetensors("{\"weights\":", data), "of the header, expected JSON"},
          {safetensors("{\"\xff\":1}", data), "of the header, expected JSON"},
          {safetensors("{\"a\":1e999}", data), "found a number too large in the header"},
          {safetensors("{\"a\":1}", data), "found no object for 'a', expected a tensor"},
          {file(weights, visible, hidden, "," + hidden), "found 'hidden_bias' twice in the header"},
          {file(weights, visible, "\"hidden_bias\":{}"), "found no 'dtype' for 'hidden_bias'"},
          {file(weights, visible, tensor("hidden_bias", "F32", "[-1]", 16, 20)), "found no 'shape' of whole numbers"},
          {file(weights, visible, tensor("hidden_bias", "F32", "[1.0]", 16, 20)), "found no 'shape' of whole numbers"},
          {file(weights, visible, tensor("hidden_bias", "F32", "1", 16, 20)), "found no 'shape' of whole numbers"},
          {file(weights, visible, tensor("hidden_bias", "BF16", "[2]", 16, 20)), "expected F32 or F64"},
          {file(weights, visible, tensor("hidden_bias", "F32", "[1]", 20, 16)), "found [20, 16] as 'data_offsets'"},
          {file(weights, visible, tensor("hidden_bias", "F32", "[1]", 16, 24)), "within 20 bytes of data"},
          {file(weights, visible, tensor("hidden_bias", "F32", "[2]", 16, 20)), "found 4 bytes for 'hidden_bias'"},
          {file(weights, visible, tensor("hidden_bias", "F32", "[4294967296,4294967296,4]", 16, 20)), "found 4 bytes"},
          {file(weights, visible, tensor("hidden_bias", "F32", "[1]", 12, 16)), "found 'hidden_bias' at byte 12"},
          {file(weights, visible, tensor("other", "F32", "[1]", 16, 20)), "found no 'hidden_bias', expected 'weights'"},
          {good + "x", "found 1 bytes after the last tensor"},
          {good.substr(0, good.size() - 1), "within 19 bytes of data"},
          {file(tensor("weights", "F32", "[2,1]", 0, 8), visible, hidden),
           "found 'visible_bias' of shape [2] beside 'weights' of shape [2, 1], expected [1]"},
          {file(tensor("weights", "F32", "[2]", 0, 8), visible, hidden), "expected [hidden, visible]"},
          {file(weights, visible, tensor("hidden_bias", "F32", "[1,1]", 16, 20)),
           "found 'hidden_bias' of shape [1, 1]"},
          {with(good, good.size() - 4, raw<float>({infinite})), "found number 1 of 'hidden_bias' not finite"},
          {with(good, good.size() - 16, raw<float>({std::nanf("")})), "found number 2 of 'weights' not finite"},
          {meta("[]"), "found '__metadata__' that is no object"},
          {meta(R"({"rows":1,"columns":"2"})"), "found 'rows' in '__metadata__' that is no string"},
          {meta(R"({"rows":"one","columns":"2"})"), "found 'one' for 'rows', expected a whole number"},
          {meta(R"({"rows":"1"})"), "found 'rows' without 'columns'"},
          {meta(R"({"rows":"2","columns":"2"})"), "found an image of 2 x 2 pixels, expected as many as the 2 visible"},
          {meta(R"({"rows":"-1","columns":"-2"})"), "found an image of -1 x -2 pixels"},
      },
      [](const std::string& content) { (void)parse_safetensors(content, "file"); });
}

std::string npy(const std::string& header, const std::string& data, int version = 1) {
  return "\x93NUMPY" + little(version, 2) + little(header.size(), version == 1 ? 2 : 4) + header + data;
}

std::string npy_of(const std::string& type, const std::string& shape, const std::string& data, bool fortran = false) {
  return npy(
      fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}\n", type, fortran ? "True" : "False", shape),
      data);
}

struct Entry {
  std::string name;
  std::string bytes;
  bool deflate = false;
};

std::string zip(const std::vector<Entry>& entries) {
  std::string content;
  std::string directory;
  for (const auto& [name, bytes, deflate] : entries) {
    const std::string packed = deflate ? deflated(bytes) : bytes;
    const std::string common = little(20, 2) + little(0, 2) + little(deflate ? 8 : 0, 2) + little(0, 4) +
                               little(crc(bytes), 4) + little(packed.size(), 4) + little(bytes.size(), 4) +
                               little(name.size(), 2) + little(0, 2);
    directory += "PK\x01\x02" + little(20, 2) + common + little(0, 6) + little(0, 4) + little(content.size(), 4) + name;
    content += "PK\x03\x04" + common + name + packed;
  }
  return content + directory + "PK\x05\x06" + little(0, 4) + little(entries.size(), 2) + little(entries.size(), 2) +
         little(directory.size(), 4) + little(content.size(), 4) + little(0, 2);
}

const Entry kVisible{"visible_bias.npy", npy_of("<f4", "(3,)", raw<float>({7, 8, 9}))};
const Entry kHidden{"hidden_bias.npy", npy_of("<f8", "(2,)", raw<double>({10, 11}))};
const Entry kWeights{"weights.npy", npy_of("<f4", "(2, 3)", raw<float>({1, 2, 3, 4, 5, 6}))};
const RbmWeights kMachine{3, 2, {1, 2, 3, 4, 5, 6}, {7, 8, 9}, {10, 11}};

TEST(NpzTest, ReadsWhatNumpyWrites) {
  const auto read = [](const std::vector<Entry>& entries) { return parse_npz(zip(entries), "file"); };
  EXPECT_EQ(read({kWeights, kVisible, kHidden}), kMachine);
  const std::string by_column = raw<double>({1, 4, 2, 5, 3, 6});
  EXPECT_EQ(read({{"weights.npy", npy_of("<f8", "(2, 3)", by_column, true), true}, kVisible, kHidden}), kMachine);
  const std::string header = R"({"shape":(2L,3L),"fortran_order":False,"descr":"<f4"})";
  for (const int version : {1, 2, 3}) {
    const Entry weights{"weights.npy", npy(header, raw<float>(kMachine.weights), version)};
    EXPECT_EQ(read({{"readme.txt", "?"}, {"other.npy", "?"}, kHidden, kVisible, weights}), kMachine);
  }
  const Entry rows{"rows.npy", npy_of("<i8", "()", little(3, 8))};
  const Entry columns{"columns.npy", npy_of("<i4", "(1,)", little(1, 4))};
  EXPECT_EQ(read({kWeights, kVisible, kHidden, rows, columns}).rows, 3U);
  const std::string comment = "a comment, PK\x05\x06";
  std::string content = zip({kWeights, kVisible, kHidden});
  content = with(content, content.size() - 2, little(comment.size(), 2)) + comment;
  EXPECT_EQ(parse_npz(content, "file"), kMachine);
}

TEST(NpzTest, RefusesMalformedArrays) {
  const auto weights = [](const std::string& bytes) { return zip({{"weights.npy", bytes}, kVisible, kHidden}); };
  const std::string data = raw<float>(kMachine.weights);
  const Entry large{"hidden_bias.npy", npy_of("<f8", "(2,)", raw<double>({1, 1e39}))};
  const Entry float_rows{"rows.npy", npy_of("<f8", "()", raw<double>({3}))};
  const Entry rows{"rows.npy", npy_of("<i8", "()", little(3, 8))};
  expect_refusals(
      {
          {zip({}), "found no 'weights'"},
          {zip({kVisible, kHidden}), "found no 'weights'"},
          {zip({kWeights, kVisible, kHidden, kVisible}), "'visible_bias.npy': found it twice"},
          {zip({kWeights, kVisible, kHidden, rows}), "found 'rows' without 'columns'"},
          {zip({kWeights, kVisible, kHidden, float_rows}), "expected one integer of type '<i8' or '<i4'"},
          {zip({kWeights, kVisible, large}), "found number 2 of 'hidden_bias' not finite in 32 bits"},
          {weights("text"), "'weights.npy': found 'text', expected the beginning of an npy file"},
          {weights(npy("{}", data, 4)), "found an npy file of version 4"},
          {weights("\x93NUMPY" + little(1, 2) + little(999, 2) + "{}"), "found a header of 999 bytes announced"},
          {weights(npy("{}", data)), "found 'a header without all of them'"},
          {weights(npy("", data)), "expected an npy header"},
          {weights(npy("{'descr': [('a', '<f4')], ", data)), "expected an npy header with 'descr' (one type)"},
          {weights(npy("{'descr': '<f4', 'descr': '<f4'}", data)), "found 'descr'"},
          {weights(npy_of("<f4", "(2, 3)} x", data)), "expected an npy header"},
          {weights(npy_of("<f4", "(2, -3)", data)), "expected an npy header"},
          {weights(npy_of("<f4", "(2, 99999999999999999999)", data)), "expected an npy header"},
          {weights(npy_of(">f4", "(2, 3)", data)), "found numbers of type '>f4', expected '<f4' or '<f8'"},
          {weights(npy_of("<f8", "(2, 3)", data)), "found 24 bytes of numbers for shape [2, 3] and type '<f8'"},
          {weights(npy_of("<f4", "(4294967296, 4294967296)", "")), "found 0 bytes of numbers"},
          {weights(npy_of("<f4", "(0, 3)", "")), "found 'weights' of shape [0, 3], expected [hidden, visible]"},
          {weights(npy_of("<f4", "(3, 2)", data)),
           "found 'visible_bias' of shape [3] beside 'weights' of shape [3, 2]"},
      },
      [](const std::string& content) { (void)parse_npz(content, "file"); });
}

TEST(NpzTest, RefusesMalformedZipFiles) {
  const std::string good = zip({{"weights.npy", kWeights.bytes, true}, kVisible, kHidden});
  ASSERT_EQ(parse_npz(good, "file"), kMachine);
  const std::size_t end = good.size() - 22;
  const std::size_t entry = good.find("PK\x01\x02");
  const std::size_t begin = 30 + std::string("weights.npy").size();
  const std::string ones = little(~0ULL, 4);
  expect_refusals(
      {
          {good.substr(0, good.size() - 1), "without a zip directory at their end"},
          {good + "x", "without a zip directory at their end"},
          {with(good, end + 8, little(0xffff'ffff, 4)), "in the 64-bit form"},
          {with(good, end + 16, ones), "in the 64-bit form"},
          {with(good, end + 4, little(1, 2)), "found one part of a zip file"},
          {with(good, end + 12, little(1, 4)), "found a zip directory of 1 bytes at byte"},
          {with(good, end + 8, little(4, 2) + little(4, 2)), "found no entry 4 at byte"},
          {with(good, end + 8, little(2, 2) + little(2, 2)), "after 2 entries of the zip directory, expected none"},
          {with(good, entry, "PK??"), "found no entry 1 at byte"},
          {with(good, entry + 28, little(9999, 2)), "found entry 1 of the zip directory cut off"},
          {with(good, entry + 8, little(1, 2)), "found 'weights.npy' encrypted"},
          {with(good, entry + 10, little(12, 2)), "found 'weights.npy' compressed by method 12"},
          {with(good, entry + 20, ones), "found 'weights.npy' in the 64-bit form"},
          {with(good, entry + 24, little(1'000'000'000, 4)), "that do not unpack to as many as announced"},
          {with(good, entry + 24, little(kWeights.bytes.size() + 1, 4)), "that do not unpack to as many as announced"},
          {with(good, entry + 24, little(kWeights.bytes.size() - 1, 4)), "that do not unpack to as many as announced"},
          {with(good, entry + 42, little(end, 4)), "found no room for"},
          {with(good, entry + 20, little(entry, 4)), "found no room for"},
          {with(good, entry + 42, little(1, 4)), "found no zip entry at byte 1, expected 'weights.npy'"},
          {with(good, 30, "W"), "found another name at byte 0, expected 'weights.npy'"},
          {with(good, begin, "\x07"), "found damaged compressed data (invalid block type)"},
          {with(good, begin + 90, "?"), "found 'weights.npy' with checksum"},
      },
      [](const std::string& content) { (void)parse_npz(content, "file"); });
}

}  // namespace poise::rbm_files_test
