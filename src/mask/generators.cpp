#include "mask/generators.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/nearest.h"
#include "mask/block_draw.h"
#include "mask/lengths.h"
#include "mask/mask_slice.h"
#include "mask/own_file.h"
#include "mask/own_lengths.h"
#include "mask/own_mask.h"

namespace longca {
namespace {

/// The output of a generator: the slices, and of block-sparse masks the blocks to choose from.
struct Draft {
  const MaskSpec& spec;
  PythonRandom random;
  GeneratedMask drawn;  ///< lengths, prefix, window, global_tokens
  std::vector<MaskSlice> slices;
  std::optional<BlockChoice> choice;

  std::int64_t tokens() const { return spec.tokens; }
  void add(Range q, Range k) { append_band(slices, {q, k, -kNoLimit, kNoLimit}); }
  /// Keys up to the query itself.
  void add_causal(Range q, Range k) { append_band(slices, {q, k, -kNoLimit, 0}); }

  void draw_documents() {
    const bool given = !spec.document_lengths.empty();
    drawn.lengths = given ? spec.document_lengths : sample_lengths(spec.lengths, tokens(), random);
  }
  /// The documents as ranges of tokens.
  std::vector<Range> documents() const {
    std::vector<Range> ranges;
    std::int64_t begin = 0;
    for (const std::int64_t length : drawn.lengths) {
      ranges.push_back({begin, begin + length});
      begin += length;
    }
    return ranges;
  }
};

void full(Draft& d) {
  d.add({0, d.tokens()}, {0, d.tokens()});
}

void causal(Draft& d) {
  d.add_causal({0, d.tokens()}, {0, d.tokens()});
}

void sliding_window(Draft& d) {
  const std::int64_t w = d.spec.window.value_or(kDefaultWindow);
  d.drawn.window = w;
  append_band(d.slices, {{0, d.tokens()}, {0, d.tokens()}, -w, w});
}

void sliding_window_causal(Draft& d) {
  const std::int64_t w = d.spec.window.value_or(kDefaultWindow);
  d.drawn.window = w;
  append_band(d.slices, {{0, d.tokens()}, {0, d.tokens()}, -w, 0});
}

void document(Draft& d) {
  d.draw_documents();
  for (const Range document : d.documents()) d.add(document, document);
}

void causal_document(Draft& d) {
  d.draw_documents();
  for (const Range document : d.documents()) d.add_causal(document, document);
}

void shared_question(Draft& d) {
  causal_document(d);
  const std::int64_t question = d.drawn.lengths.empty() ? 0 : d.drawn.lengths.front();
  d.add({question, d.tokens()}, {0, question});
}

void global_sliding_window(Draft& d) {
  const std::int64_t tokens = d.tokens();
  const std::int64_t g = tokens < 6 ? 1 : d.random.randint(1, tokens / 3 - 1);
  const std::int64_t w = d.spec.window.value_or(g);
  d.drawn.global_tokens = g;
  d.drawn.window = w;
  const Range global = {0, std::min(g, tokens)};
  const Range local = {global.end, tokens};
  d.add(global, {0, tokens});
  d.add(local, global);
  append_band(d.slices, {local, local, -w, w});
}

void causal_blockwise(Draft& d) {
  d.draw_documents();
  const std::vector<Range> documents = d.documents();
  for (std::size_t i = 0; i < documents.size(); ++i) {
    const bool last = i + 1 == documents.size();
    d.add_causal(documents[i], {last ? 0 : documents[i].begin, documents[i].end});
  }
}

void prefix_lm(Draft& d, Range document, std::int64_t prefix) {
  const std::int64_t split = document.begin + std::min(prefix, document.size());
  d.add({document.begin, split}, {document.begin, split});
  d.add_causal({split, document.end}, document);
}

void prefix_lm_causal(Draft& d) {
  if (d.tokens() == 0) return;
  d.drawn.prefix = d.random.randint(1, d.tokens());
  prefix_lm(d, {0, d.tokens()}, *d.drawn.prefix);
}

void prefix_lm_document(Draft& d) {
  d.draw_documents();
  if (d.tokens() == 0) return;
  d.drawn.prefix = d.random.randint(1, d.drawn.lengths.front());
  for (const Range document : d.documents()) prefix_lm(d, document, *d.drawn.prefix);
}

void block_causal_document(Draft& d) {
  constexpr std::int64_t kMaxBlocks = std::int64_t{1} << 26;  // of 100 bytes each, 7 GiB
  const std::int64_t block = d.spec.block_tokens.value_or(kDefaultBlockTokens);
  if (const std::int64_t blocks = d.tokens() / block; blocks > kMaxBlocks) {
    throw_input_error("{} tokens are {} blocks of block_tokens = {}: the limit is {}", d.tokens(),
                      blocks, block, kMaxBlocks);
  }
  for (std::int64_t begin = 0; begin < d.tokens();) {
    const std::int64_t end = std::min(begin + d.random.randint(1, 8) * block, d.tokens());
    d.drawn.lengths.push_back(end - begin);
    for (std::int64_t first = begin; first < end; first += block) {
      const std::int64_t last = std::min(first + block, end);
      d.add({first, last}, {begin, last});
    }
    begin = end;
  }
}

/// The slices of a block-sparse mask, which limit the cells of kept blocks.
void block_frame(Draft& d) {
  d.spec.block_causal ? causal(d) : full(d);
}

BlockChoice choice_of(const MaskSpec& spec, std::vector<std::int64_t> q_bounds,
                      std::vector<std::int64_t> k_bounds) {
  return {std::move(q_bounds), std::move(k_bounds),
          spec.block_heads == "kv" ? spec.heads_k : spec.heads_q, spec.density, spec.block_causal};
}

void block_sparse(Draft& d) {
  const auto bounds = uniform_bounds(d.tokens(), d.spec.block);
  d.choice = choice_of(d.spec, bounds, bounds);
  block_frame(d);
}

void block_sparse_variable(Draft& d) {
  auto q_bounds = variable_bounds(d.tokens(), d.spec.block, d.random);
  auto k_bounds = variable_bounds(d.tokens(), d.spec.block, d.random);
  d.choice = choice_of(d.spec, std::move(q_bounds), std::move(k_bounds));
  block_frame(d);
}

struct Generator {
  MaskTraits traits;
  void (*generate)(Draft&);
};

/// The table of masks. Traits: lengths, seed, window, block_tokens, blocks.
const std::vector<Generator>& generators() {
  static const std::vector<Generator> all = {
      {{"full", "every query sees every key"}, full},
      {{"causal", "every query sees the keys up to its own"}, causal},
      {{"sliding_window", "|q − k| ≤ window", false, false, true}, sliding_window},
      {{"sliding_window_causal", "0 ≤ q − k ≤ window", false, false, true}, sliding_window_causal},
      {{"document", "full inside every document", true, true}, document},
      {{"causal_document", "causal inside every document", true, true}, causal_document},
      {{"shared_question", "causal documents, and all later tokens see the first one", true, true},
       shared_question},
      {{"global_sliding_window",
        "the first tokens see and are seen by all, the rest |q − k| ≤ window", false, true, true},
       global_sliding_window},
      {{"causal_blockwise", "causal documents, the last of which sees all before it", true, true},
       causal_blockwise},
      {{"prefix_lm_causal", "a prefix that sees itself fully, the rest causal", false, true},
       prefix_lm_causal},
      {{"prefix_lm_document", "prefix_lm_causal inside every document", true, true},
       prefix_lm_document},
      {{"block_causal_document", "documents of 1 to 8 blocks: all blocks up to the query's own",
        false, true, false, true},
       block_causal_document},
      {{"block_sparse", "random blocks per head", false, true, false, false, true}, block_sparse},
      {{"block_sparse_variable", "random blocks of varying size per head", false, true, false,
        false, true},
       block_sparse_variable},
  };
  return all;
}

const Generator& find_generator(const std::string& name) {
  std::vector<std::string> names;
  for (const Generator& generator : generators()) {
    if (generator.traits.name == name) return generator;
    names.push_back(generator.traits.name);
  }
  if (without_hash(name) != name) {
    throw_input_error("the mask {} was not read: give mask=FILE", name);
  }
  throw_input_error("unknown mask '{}'{}", name, suggestion(name, names));
}

void check_count(const char* what, std::int64_t value, std::int64_t min) {
  if (value < min || value > kMaxTokens) {
    throw_input_error("{} = {}: at least {}, at most {}", what, value, min, kMaxTokens);
  }
}

void check_documents(const MaskSpec& spec) {
  if (spec.document_lengths.empty()) return;
  std::int64_t sum = 0;
  for (const std::int64_t length : spec.document_lengths) {
    check_count("a document's length", length, 1);
    sum += length;
  }
  if (sum != spec.tokens) {
    throw_input_error("the {} documents have {} tokens together, the sequence has {}",
                      spec.document_lengths.size(), sum, spec.tokens);
  }
}

void check_spec(const MaskSpec& spec) {
  check_count("tokens", spec.tokens, 0);
  check_documents(spec);
  check_count("window", spec.window.value_or(0), 0);
  check_count("block_tokens", spec.block_tokens.value_or(1), 1);
  check_count("block", spec.block, 1);
  if (!(spec.density > 0 && spec.density <= 1)) {
    throw_input_error("density = {}: above 0 and at most 1", spec.density);
  }
  if (spec.heads_q < 1 || spec.heads_k < 1 || spec.heads_q % spec.heads_k != 0) {
    throw_input_error("heads = {}:{}: the KV heads must divide the query heads", spec.heads_q,
                      spec.heads_k);
  }
  if (spec.block_heads != "kv" && spec.block_heads != "query") {
    const std::array<std::string, 2> names = {"kv", "query"};
    throw_input_error("block_heads = '{}': 'kv' or 'query'{}", spec.block_heads,
                      suggestion(spec.block_heads, names));
  }
}

}  // namespace

std::span<const MaskTraits> mask_table() {
  static const std::vector<MaskTraits> table = [] {
    std::vector<MaskTraits> traits;
    for (const Generator& generator : generators()) traits.push_back(generator.traits);
    return traits;
  }();
  return table;
}

const MaskTraits& mask_traits(const std::string& name) {
  if (const OwnMask* own = find_own_mask(name)) return own->traits;
  return find_generator(name).traits;
}

namespace {

Draft drafted(const MaskSpec& spec) {
  const Generator& generator = find_generator(spec.name);
  check_spec(spec);
  Draft draft{spec, PythonRandom(spec.seed), {Mask::from_slices(0, 0, {}), {}, {}, {}, {}}, {}, {}};
  generator.generate(draft);
  return draft;
}

}  // namespace

GeneratedMask generate_mask(const MaskSpec& spec) {
  if (const OwnMask* own = find_own_mask(spec.name)) {
    if (own->generated.mask.q_tokens() != spec.tokens) {
      throw_input_error("{}, and the sequence has {}",
                        misfit(*own, spec.tokens, spec.heads_q, spec.heads_k), spec.tokens);
    }
    return own->generated;
  }
  Draft draft = drafted(spec);
  if (draft.choice) return mask_of_blocks(spec, draw_blocks(*draft.choice, spec.seed));
  GeneratedMask result = std::move(draft.drawn);
  result.mask = Mask::from_slices(spec.tokens, spec.tokens, std::move(draft.slices));
  return result;
}

namespace {

double listed_blocks(const Mask& mask) {
  return mask.blocks() == nullptr ? 0 : static_cast<double>(mask.blocks()->indices.size());
}

}  // namespace

double kept_blocks(const MaskSpec& spec) {
  if (const OwnMask* own = find_own_mask(spec.name)) return listed_blocks(own->generated.mask);
  if (!mask_traits(spec.name).uses_blocks) return 0;
  const double blocks =
      std::ceil(static_cast<double>(spec.tokens) / static_cast<double>(spec.block));
  const double lists = spec.block_heads == "kv" ? spec.heads_k : spec.heads_q;
  return lists * blocks * std::max(1.0, std::round(spec.density * blocks));
}

double estimate_pieces(const MaskSpec& spec) {
  constexpr double kTokensOfDocument = 64;  // fewer than any distribution has on average
  if (const OwnMask* own = find_own_mask(spec.name)) {
    const Mask& mask = own->generated.mask;
    return static_cast<double>(mask.slices().size()) + listed_blocks(mask);
  }
  const MaskTraits& traits = mask_traits(spec.name);
  const auto tokens = static_cast<double>(spec.tokens);
  if (traits.uses_blocks) return kept_blocks(spec);
  if (traits.uses_block_tokens)
    return tokens / static_cast<double>(spec.block_tokens.value_or(kDefaultBlockTokens));
  if (!traits.uses_lengths) return 1;
  const OwnLengths* own = find_own_lengths(spec.lengths);
  if (own == nullptr) return tokens / kTokensOfDocument;
  return std::min(tokens, static_cast<double>(own->lengths.size()));
}

BlockChoice block_choice(const MaskSpec& spec) {
  Draft draft = drafted(spec);
  LONGCA_CHECK(draft.choice.has_value(), "{} has no blocks", spec.name);
  return std::move(*draft.choice);
}

GeneratedMask mask_of_blocks(const MaskSpec& spec, BlockLists lists) {
  Draft draft = drafted(spec);
  LONGCA_CHECK(draft.choice.has_value(), "{} has no blocks", spec.name);
  GeneratedMask result = std::move(draft.drawn);
  result.mask =
      Mask::from_blocks(spec.tokens, spec.tokens, std::move(draft.slices), std::move(lists));
  return result;
}

}  // namespace longca
