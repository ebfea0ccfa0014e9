/// Replays the fuzzers' corpora, past findings among them: each file is accepted or refused with a sentence.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <poise/extend/base/spec.hpp>
#include <poise/image.hpp>
#include <poise/network.hpp>
#include <poise/selection.hpp>
#include "base/file.hpp"
#include "models/ising/ising_model.hpp"
#include "models/network/independent_set.hpp"
#include "models/rbm/number_array.hpp"
#include "models/rbm/rbm_weights.hpp"
#include "studies/images/idx.hpp"

namespace poise::corpus_test {

std::vector<std::filesystem::path> corpus(const std::string& reader) {
  const std::filesystem::path folder = std::filesystem::path(POISE_TEST_DATA) / ".." / "fuzz" / "corpus" / reader;
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::is_directory(folder)) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
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

TEST(CorpusTest, Tables) {
  const auto read = [](const auto& path) {
    const std::string text = read_file(path);
    const SummaryTable summary = read_summary(text, path.string());
    EXPECT_EQ(summary.extra.size(), summary.z.size());
    static_cast<void>(read_regression(text, path.string(), "y"));
  };
  replay(corpus("table"), read);
}

TEST(CorpusTest, Correlations) {
  const auto read = [](const auto& path) {
    const SymmetricMatrix matrix = read_correlations(read_file(path), path.string());
    EXPECT_NE(matrix.dense.empty(), matrix.column_start.empty());
  };
  EXPECT_GT(replay(corpus("correlations"), read), 0);
}

TEST(CorpusTest, Specs) {
  const auto read = [](const auto& path) {
    const Spec spec = parse_spec(read_file(path));
    EXPECT_EQ(parse_spec(spec.text()), spec);
    SpecReader(spec, "model").finish({"size", "lambda"});
  };
  ASSERT_FALSE(corpus("spec").empty());
  replay(corpus("spec"), read);
}

TEST(CorpusTest, Matrices) {
  const auto read = [](const auto& path) {
    const Matrix matrix = parse_matrix(read_file(path), "matrix");
    EXPECT_EQ(matrix.values.size(), std::size_t{matrix.rows} * matrix.columns);
    EXPECT_EQ(parse_numbers(read_file(path), "matrix"), matrix.values);
  };
  EXPECT_GT(replay(corpus("matrix"), read), 0);
}

TEST(CorpusTest, EdgeLists) {
  const auto read = [](const auto& path) {
    for (const Edge& edge : parse_edges(read_file(path), "graph", 1).edges) EXPECT_NE(edge.i, edge.j);
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

TEST(CorpusTest, Networks) {
  const auto read_uai_text = [](const auto& path) {
    const Network network = parse_uai(read_file(path), "network");
    EXPECT_EQ(read_uai(path.string()).values, network.values);  // in chunks, from the file
  };
  EXPECT_GT(replay(corpus("uai"), read_uai_text), 0);
  const auto read_bif_text = [](const auto& path) {
    const Network network = parse_bif(read_file(path), "network");
    EXPECT_EQ(network.names.size(), network.num_variables());
  };
  EXPECT_GT(replay(corpus("bif"), read_bif_text), 0);
}

TEST(CorpusTest, EvidenceAndMarginals) {
  const Network network = parse_uai("MARKOV 4 2 3 2 4 0", "network");
  const auto read_evidence_text = [&](const auto& path) {
    EXPECT_LE(parse_evidence(read_file(path), "evidence", network).size(), 4U);
  };
  EXPECT_GT(replay(corpus("evidence"), read_evidence_text), 0);
  const auto read_mar_text = [](const auto& path) {
    const Marginals marginals = parse_mar(read_file(path), "marginals");
    EXPECT_EQ(parse_mar(mar_text(marginals), "again").start, marginals.start);
  };
  EXPECT_GT(replay(corpus("mar"), read_mar_text), 0);
  const auto read_mpe_text = [](const auto& path) {
    const std::vector<Value> state = parse_mpe(read_file(path), "state");
    EXPECT_EQ(parse_mpe(mpe_text(state), "again"), state);
  };
  EXPECT_GT(replay(corpus("mpe"), read_mpe_text), 0);
}

TEST(CorpusTest, Graphs) {
  const auto read = [](const auto& path) {
    const SimpleGraph graph = parse_graph(read_file(path), "graph");
    for (const auto& [i, j] : graph.edges) EXPECT_TRUE(i < j && j < graph.vertices);
  };
  EXPECT_GT(replay(corpus("graph"), read), 0);
}

TEST(CorpusTest, QuadraticFunctions) {
  const auto read = [](const auto& path) {
    for (const Edge& edge : parse_qubo(read_file(path), "qubo").quadratic) EXPECT_LT(edge.i, edge.j);
  };
  EXPECT_GT(replay(corpus("qubo"), read), 0);
}

TEST(CorpusTest, ImageSets) {
  const auto read = [](const auto& path) {
    const IdxImages images = read_idx(path.string());
    EXPECT_EQ(images.pixels.size(), images.count * images.rows * images.columns);
  };
  EXPECT_EQ(replay(corpus("idx"), read), 2);  // plain and packed
}

TEST(CorpusTest, RestrictedBoltzmannMachines) {
  const auto read = [](const auto& path) {
    const RbmWeights rbm = read_rbm(path.string());
    EXPECT_EQ(rbm.weights, (std::vector<float>{1, -2, 0.5, 0, 3, 4, -1, 2}));
    EXPECT_EQ(rbm.hidden_bias, (std::vector<float>{-1, 1}));
  };
  EXPECT_EQ(replay(corpus("safetensors"), read), 2);  // in 32 and in 64 bits
  EXPECT_EQ(replay(corpus("npz"), read), 3);          // as it comes, compressed, and column by column
}

TEST(CorpusTest, ArraysOfNumbers) {
  const auto read = [](const auto& path) {
    const NumberArray array = read_number_array(path.string());
    std::uint64_t count = 1;
    for (const std::uint64_t side : array.shape) count *= side;
    EXPECT_EQ(array.values.size(), count);
  };
  EXPECT_EQ(replay(corpus("array"), read), 7);
}

}  // namespace poise::corpus_test
