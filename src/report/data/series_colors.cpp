#include "report/data/series_colors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

namespace longca {
namespace {

/// Kernels that are often compared are far apart.
constexpr std::array<std::pair<std::string_view, std::string_view>, 28> kFixed = {{
    {"slice", "#2f6fbb"},
    {"fa3", "#d08038"},
    {"cudnn", "#3c9d6b"},
    {"flex", "#b8527f"},
    {"fa2", "#8468b8"},
    {"naive", "#7a8290"},
    {"sdpa", "#af9029"},
    {"sdpa_mask", "#9f9361"},
    {"fa1", "#439eb0"},
    {"flashmask", "#c4534a"},
    {"flashmask_native", "#c1837c"},
    {"ffa", "#6f7f35"},
    {"fa4", "#96602f"},
    {"flash", "#3e98de"},
    {"block_sparse", "#cc76ab"},
    {"vsa", "#12807c"},
    {"vsa_triton", "#5a9f95"},
    {"flashinfer", "#d0405f"},
    {"fa2_sparse", "#5a45a8"},
    {"fa2_sparse_native", "#988ac7"},
    {"cudnn_bsa", "#749d66"},
    {"magiattention", "#a8741a"},
    {"ulysses", "#2e6db9"},
    {"ring_p2p", "#cf7f37"},
    {"ring_allgather", "#3b9c6a"},
    {"usp", "#8367b7"},
    {"loongtrain", "#ae8f28"},
    {"magi", "#c1424e"},
}};

constexpr std::array<std::string_view, 12> kSpare = {"#00a0c8", "#a83279", "#5f8f2f", "#ae9105",
                                                     "#4c5f9e", "#e06377", "#2e8b57", "#9a4fd0",
                                                     "#b68b5c", "#0f6f8f", "#b05c50", "#708a00"};

/// FNV-1a, so that the colour of a plug-in does not depend on the standard library.
std::uint32_t hash_of(std::string_view text) {
  std::uint32_t hash = 2166136261U;
  for (const char letter : text) hash = (hash ^ static_cast<unsigned char>(letter)) * 16777619U;
  return hash;
}

/// 0, then darker and lighter in turn, ever farther from the colour.
double share_of(std::size_t shade) {
  const std::size_t pair = (shade + 1) / 2;
  const double step = 0.5 * static_cast<double>(pair);
  const double share = step / (step + 0.65);
  return shade % 2 == 1 ? -share : share;
}

/// 0, then ever closer to white.
double lighter_share_of(std::size_t shade) {
  const double step = 0.35 * static_cast<double>(shade);
  return step / (step + 0.65);
}

/// The colour, mixed with as little white as gives it kMinContrast from kDarkGround.
std::string lifted(std::string_view color) {
  constexpr double kStep = 0.02;
  std::string mixed(color);
  for (double share = kStep; contrast(mixed, kDarkGround) < kMinContrast; share += kStep) {
    mixed = mixed_color(color, share);
  }
  return mixed;
}

/// Red, green or blue, which begins at `at`: 0 to 255.
int part_of(std::string_view color, std::size_t at) {
  int part = 0;
  std::from_chars(color.data() + at, color.data() + at + 2, part, 16);
  return part;
}

/// WCAG 2's relative luminance: 0 of black to 1 of white.
double luminance(std::string_view color) {
  constexpr std::array kWeights = {0.2126, 0.7152, 0.0722};
  double sum = 0;
  for (std::size_t i = 0; i < kWeights.size(); ++i) {
    const double part = part_of(color, 1 + 2 * i) / 255.0;
    sum += kWeights[i] * (part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4));
  }
  return sum;
}

}  // namespace

double contrast(std::string_view a, std::string_view b) {
  const double of_a = luminance(a);
  const double of_b = luminance(b);
  return (std::max(of_a, of_b) + 0.05) / (std::min(of_a, of_b) + 0.05);
}

std::string mixed_color(std::string_view color, double share) {
  std::string mixed = "#";
  for (std::size_t at = 1; at < 7; at += 2) {
    const int part = part_of(color, at);
    const double goal = share > 0 ? 255 : 0;
    mixed += fmt::format("{:02x}", std::lround(part + (goal - part) * std::abs(share)));
  }
  return mixed;
}

SeriesColors::Base SeriesColors::base_of(const std::string& name) {
  const auto fixed = std::find_if(kFixed.begin(), kFixed.end(),
                                  [&](const auto& known) { return known.first == name; });
  if (fixed != kFixed.end()) return {fixed->second};
  const auto is_taken = [&](const Base& base) {
    return std::any_of(taken_.begin(), taken_.end(), [&](const auto& known) {
      return known.second.color == base.color && known.second.shade == base.shade;
    });
  };
  Base& base = taken_[name];
  for (std::size_t i = 0; base.color.empty(); ++i) {
    const Base next{kSpare[(hash_of(name) + i) % kSpare.size()], i / kSpare.size()};
    if (!is_taken(next)) base = next;
  }
  return base;
}

std::string SeriesColors::color_of(const std::string& name, std::size_t shade) {
  const Base base = base_of(name);
  return mixed_color(mixed_color(base.color, share_of(base.shade)), share_of(shade));
}

std::string SeriesColors::on_dark(const std::string& name, std::size_t shade) {
  const Base base = base_of(name);
  return mixed_color(mixed_color(lifted(base.color), lighter_share_of(base.shade)),
                     lighter_share_of(shade));
}

}  // namespace longca
