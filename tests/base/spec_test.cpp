/// The grammar of models and samplers: what is accepted means what it says, what is refused says why.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <poise/extend/base/spec.hpp>
#include "models/ising/ising_model.hpp"
#include "support/input.hpp"

namespace poise::spec_test {

using testing::holds;
using testing::refusal;

std::string ising_refusal(const std::string& text) {
  return refusal([&] { make_ising(parse_spec(text)); });
}

std::string spec_refusal(const std::string& text) {
  return refusal([&] { parse_spec(text); });
}

TEST(SpecTest, ReadsNamesAndSettingsInOrder) {
  const Spec spec = parse_spec("ising:size=30,graph=/a/b:c=d.txt");
  EXPECT_EQ(spec.name, "ising");
  ASSERT_EQ(spec.settings.size(), 2U);
  EXPECT_EQ(spec.settings[0], std::pair(std::string("size"), std::string("30")));
  EXPECT_EQ(spec.settings[1], std::pair(std::string("graph"), std::string("/a/b:c=d.txt")));
  EXPECT_TRUE(parse_spec("gibbs").settings.empty());
}

TEST(SpecTest, TextIsTheInverseOfParsing) {
  for (const std::string text : {"gibbs", "lb:g=sqrt", "hb:block=10,radius=1", "a:b=c=d:e,f=/g"}) {
    EXPECT_EQ(parse_spec(text).text(), text);
  }
}

TEST(SpecTest, RefusesWhatIsNotTheGrammar) {
  EXPECT_EQ(spec_refusal(""), "no name in '', expected name:key=value,key=value");
  EXPECT_EQ(spec_refusal(":size=3"), "no name in ':size=3', expected name:key=value,key=value");
  EXPECT_EQ(spec_refusal("size=3"), "found 'size=3' in place of a name, expected name:key=value,key=value");
  EXPECT_EQ(spec_refusal("a:size"), "no '=' in 'size' of 'a:size', expected key=value");
  EXPECT_EQ(spec_refusal("a:=3"), "no key in '=3' of 'a:=3', expected key=value");
  EXPECT_EQ(spec_refusal("a:b="), "no value in 'b=' of 'a:b=', expected key=value");
  EXPECT_EQ(spec_refusal("a:b=1,b=2"), "key 'b' is repeated in 'a:b=1,b=2', expected each key once");
  EXPECT_EQ(spec_refusal("a:"), "found nothing where 'a:' needs a setting, expected key=value");
  EXPECT_EQ(spec_refusal("a:b=1,"), "found nothing where 'a:b=1,' needs a setting, expected key=value");
}

TEST(SpecTest, ReportsAllProblemsOfOneText) {
  const std::string message = spec_refusal("a:b,c=");
  EXPECT_TRUE(holds(message, "2 problems in 'a:b,c='")) << message;
  EXPECT_TRUE(holds(message, "no '=' in 'b'")) << message;
  EXPECT_TRUE(holds(message, "no value in 'c='")) << message;
}

TEST(SpecTest, QuotesSafely) {
  EXPECT_EQ(quote("a b"), "'a b'");
  EXPECT_EQ(quote(std::string("a\0\n\xff", 4)), "'a\\x00\\x0a\\xff'");
  EXPECT_EQ(quote(std::string(100, 'a')), "'" + std::string(60, 'a') + "...'");
}

TEST(SpecTest, FindsTheNearestName) {
  const std::vector<std::string> names = {"lambda", "boundary", "barker", "sqrt", "mu"};
  EXPECT_EQ(nearest_name("lamda", names), "lambda");
  EXPECT_EQ(nearest_name("Lambda", names), "lambda");
  EXPECT_EQ(nearest_name("abmlda", names), "");
  EXPECT_EQ(nearest_name("sqtr", names), "sqrt");
  EXPECT_EQ(nearest_name("bound", names), "boundary");
  EXPECT_EQ(nearest_name("mv", names), "mu");
  EXPECT_EQ(nearest_name("x", names), "");
  EXPECT_EQ(nearest_name("x", {"g"}), "");  // one edit, but nothing of the word is left
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name("gibbs", {}), "");
  EXPECT_EQ(nearest_name(std::string(10000, 'l'), names), "");
  EXPECT_EQ(nearest_name("lsb", {"lsb1", "lsb", "lsb2"}), "lsb");
}

TEST(SpecTest, ParsesWholeFiniteNumbersOnly) {
  EXPECT_EQ(parse_real("-1.5e3"), -1500.0);
  EXPECT_EQ(parse_real("+2"), 2.0);
  EXPECT_EQ(parse_real(".5"), 0.5);
  for (const char* text :
       {"", "+", "-", "+-1", "++1", "1,5", "1 ", " 1", "1x", "nan", "inf", "-inf", "1e400", "0x10"}) {
    EXPECT_FALSE(parse_real(text)) << text;
  }
  EXPECT_EQ(parse_integer("-7"), -7);
  EXPECT_EQ(parse_integer("9223372036854775807"), SpecReader::kMaxInteger);
  for (const char* text : {"", "1.0", "1e3", "9223372036854775808", "0x1", "1 "}) {
    EXPECT_FALSE(parse_integer(text)) << text;
  }
}

TEST(SpecTest, ReadsTypedSettings) {
  SpecReader reader(parse_spec("lsb:rate=0.5,blocks=7,g=min,file=a=b"), "sampler");
  EXPECT_TRUE(reader.has("rate"));
  EXPECT_FALSE(reader.has("seed"));
  EXPECT_EQ(reader.real("rate", 0.01, 0, 1), 0.5);
  EXPECT_EQ(reader.real("decay", 0.25, 0, 1), 0.25);
  EXPECT_EQ(reader.integer("blocks", 20, 1, 100), 7);
  EXPECT_EQ(reader.integer("seed", -3, 0, 9), -3);  // a default need not lie in the range
  EXPECT_EQ(reader.choice("g", "sqrt", {"sqrt", "min"}), "min");
  EXPECT_EQ(reader.choice("net", "mlp", {"mlp", "monotone"}), "mlp");
  EXPECT_EQ(reader.text("file", ""), "a=b");
  EXPECT_NO_THROW(reader.finish({"rate", "blocks", "g", "file"}));
}

TEST(SpecTest, SaysWhatIsWrongWithASetting) {
  const auto reject = [](const std::string& value, const std::function<void(SpecReader&)>& read) {
    return refusal([&] {
      SpecReader reader(parse_spec("lb:k=" + value), "sampler");
      read(reader);
      reader.finish({"k"});
    });
  };
  const std::string start = "key 'k' in sampler 'lb': found ";
  EXPECT_EQ(reject("x", [](SpecReader& r) { r.integer("k", 1); }), start + "'x', expected an integer");
  EXPECT_EQ(reject("1.5", [](SpecReader& r) { r.integer("k", 1, 0); }),
            start + "'1.5', expected an integer of at least 0");
  EXPECT_EQ(reject("5", [](SpecReader& r) { r.integer("k", 1, 1, 4); }),
            start + "'5', expected an integer from 1 to 4");
  EXPECT_EQ(reject("nan", [](SpecReader& r) { r.real("k", 1); }), start + "'nan', expected a finite number");
  EXPECT_EQ(reject("-1", [](SpecReader& r) { r.real("k", 1, 0); }),
            start + "'-1', expected a finite number of at least 0");
  EXPECT_EQ(reject("2", [](SpecReader& r) { r.real("k", 1, 0, 0.5); }),
            start + "'2', expected a finite number from 0 to 0.5");
  EXPECT_EQ(reject("sqr",
                   [](SpecReader& r) {
                     r.choice("k", "min", {"sqrt", "min"});
                   }),
            start + "'sqr', expected sqrt or min (did you mean 'sqrt'?)");
  EXPECT_EQ(reject("zzz",
                   [](SpecReader& r) {
                     r.choice("k", "min", {"sqrt", "min"});
                   }),
            start + "'zzz', expected sqrt or min");
}

TEST(SpecTest, NamesUnknownKeysAndTheirNeighbours) {
  EXPECT_EQ(ising_refusal("ising:lamda=1"), "unknown key 'lamda' in model 'ising' (did you mean 'lambda'?)");
  EXPECT_EQ(refusal([] {
              SpecReader(parse_spec("gibbs:zzz=1"), "sampler").finish({"block", "scan"});
            }),
            "unknown key 'zzz' in sampler 'gibbs' (known: block, scan)");
  EXPECT_EQ(refusal([] { SpecReader(parse_spec("gwg:zzz=1"), "sampler").finish({}); }),
            "unknown key 'zzz' in sampler 'gwg' (it takes none)");
}

TEST(SpecTest, ReportsAllProblemsOfTheSettingsAtOnce) {
  const std::string message = ising_refusal("ising:size=0,lamda=1,mu=x,boundary=tours,seed=-1");
  EXPECT_TRUE(holds(message, "5 problems in model 'ising':")) << message;
  for (const char* part : {"'size'", "'lamda'", "'mu'", "did you mean 'torus'?", "'seed'"}) {
    EXPECT_TRUE(holds(message, part)) << part << " in " << message;
  }
}

}  // namespace poise::spec_test
