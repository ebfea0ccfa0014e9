/// Replays the fuzzers' corpora, past findings among them: each file is accepted or refused with a sentence.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include <poise/image/png.hpp>
#include <poise/spec.hpp>
#include <poise/target/ising_model.hpp>

namespace poise {
namespace {

std::vector<std::filesystem::path> corpus(const std::string& reader) {
  const std::filesystem::path folder = std::filesystem::path(POISE_TEST_DATA) / ".." / "fuzz" / "corpus" / reader;
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::is_directory(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// Anything but an InputError fails the test. Gives how many files were accepted.
int replay(const std::vector<std::filesystem::path>& files,
           const std::function<void(const std::filesystem::path&)>& read) {
  int accepted = 0;
  for (const auto& path : files) {
    SCOPED_TRACE(path.filename());
    try {
      read(path);
      ++accepted;
    } catch (const InputError& error) {
      EXPECT_GT(std::string(error.what()).size(), 10U);
    } catch (const std::exception& error) {
      ADD_FAILURE() << path << ": " << error.what();
    }
  }
  return accepted;
}

TEST(CorpusTest, Specs) {
  const auto read = [](const auto& path) {
    const Spec spec = parse_spec(content_of(path));
    EXPECT_EQ(parse_spec(spec.text()), spec);
    SpecReader(spec, "model").finish({"size", "lambda"});
  };
  ASSERT_FALSE(corpus("spec").empty());
  replay(corpus("spec"), read);
}

TEST(CorpusTest, Matrices) {
  const auto read = [](const auto& path) {
    const Matrix matrix = parse_matrix(content_of(path), "matrix");
    EXPECT_EQ(matrix.values.size(), std::size_t{matrix.rows} * matrix.columns);
    EXPECT_EQ(parse_numbers(content_of(path), "matrix"), matrix.values);
  };
  EXPECT_GT(replay(corpus("matrix"), read), 0);
}

TEST(CorpusTest, EdgeLists) {
  const auto read = [](const auto& path) {
    for (const Edge& edge : parse_edges(content_of(path), "graph", 1).edges) EXPECT_NE(edge.i, edge.j);
  };
  EXPECT_GT(replay(corpus("edges"), read), 0);
}

TEST(CorpusTest, Images) {
  const auto read = [](const auto& path) {
    const Image image = read_image(path.string());
    EXPECT_EQ(image.pixels.size(), image.width * image.height * image.channels);
  };
  replay(corpus("image"), read);
}

}  // namespace
}  // namespace poise
