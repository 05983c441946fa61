#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

// The pages of the project: every relative link leads to a file, every anchor to a heading, and
// every path of the tree that a page or a source names exists.
namespace longca::testing {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

/// README.md and its neighbours, and every page under docs/, examples/ and configs/.
std::vector<fs::path> pages(const fs::path& root) {
  std::vector<fs::path> found;
  const auto add = [&](const fs::directory_entry& entry) {
    if (entry.is_regular_file() && entry.path().extension() == ".md") found.push_back(entry.path());
  };
  for (const auto& entry : fs::directory_iterator(root)) add(entry);
  for (const char* folder : {"docs", "examples", "configs"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) add(entry);
  }
  return found;
}

/// The text without code blocks and code spans, in which brackets are no links.
std::string prose(const std::string& page) {
  std::istringstream lines(page);
  std::string text;
  bool code = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("```") != std::string::npos) {
      code = !code;
    } else if (!code) {
      text += line + '\n';
    }
  }
  return std::regex_replace(text, std::regex("`[^`\n]*`"), "");
}

/// The anchor that GitHub makes of a heading.
std::string anchor(const std::string& heading) {
  std::string made;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '-' || c == '_' || byte >= 0x80) {
      made += static_cast<char>(std::tolower(byte));
    } else if (c == ' ') {
      made += '-';
    }
  }
  return made;
}

bool has_anchor(const fs::path& page, const std::string& wanted) {
  std::istringstream lines(read(page));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t text = line.find_first_not_of('#');
    if (text == 0 || text == std::string::npos || line[text] != ' ') continue;
    if (anchor(line.substr(text + 1)) == wanted) return true;
  }
  return false;
}

TEST(Documents, EveryRelativeLinkResolves) {
  const fs::path root = LONGCA_SOURCE_DIR;
  const std::regex link(R"(\]\(([^)\s#]*)(#([^)\s]*))?\))");
  std::size_t links = 0;
  for (const fs::path& page : pages(root)) {
    const std::string text = prose(read(page));
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) {
      const std::string target = (*at)[1];
      if (target.find(':') != std::string::npos) continue;  // https:, mailto:
      ++links;
      const fs::path file = target.empty() ? page : page.parent_path() / target;
      EXPECT_TRUE(fs::exists(file)) << page.lexically_relative(root) << " links to " << target;
      const std::string fragment = (*at)[3];
      if (!fragment.empty() && fs::exists(file)) {
        EXPECT_TRUE(has_anchor(file, fragment))
            << page.lexically_relative(root) << " links to " << target << '#' << fragment;
      }
    }
  }
  EXPECT_GT(links, 40u);
}

TEST(Documents, APathInACodeSpanExists) {
  const fs::path root = LONGCA_SOURCE_DIR;
  const std::regex path(
      R"(`((src|apps|tests|configs|scripts|examples|benchmarks)/[a-zA-Z0-9_./-]+)`)");
  for (const fs::path& page : pages(root)) {
    const std::string text = read(page);
    for (std::sregex_iterator at(text.begin(), text.end(), path), end; at != end; ++at) {
      const std::string name = (*at)[1];
      const bool is_example =
          std::any_of(name.begin(), name.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
      if (is_example || name.ends_with("/mine.cpp")) {
        continue;  // src/attention/adapters/LIBRARY, the example of adding-a-kernel.md
      }
      EXPECT_TRUE(fs::exists(root / name) || fs::exists(root / (name + ".cpp")))
          << page.lexically_relative(root) << " names " << name;
    }
  }
}

TEST(Documents, APageThatASourceNamesExists) {
  const fs::path root = LONGCA_SOURCE_DIR;
  const std::regex name(R"(docs/[a-z0-9/-]+\.(md|svg))");
  for (const char* folder :
       {"src", "apps", "benchmarks", "examples", "scripts", "cmake", "configs"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      if (!entry.is_regular_file()) continue;
      const std::string text = read(entry.path());
      for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) {
        EXPECT_TRUE(fs::exists(root / at->str()))
            << entry.path().lexically_relative(root) << " names " << at->str();
      }
    }
  }
}

}  // namespace
}  // namespace longca::testing
