#include "parallel/partition/atoms.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>

#include "mask/generators.h"
#include "mask/oracle.h"

namespace longca {
namespace {

/// Whether a query at or behind `cut` sees a key before it, or one before it a key behind.
bool is_crossed(const oracle::Dense& cells, std::int64_t cut) {
  return cells.area_in({cut, cells.q_tokens}, {0, cut}) > 0 ||
         cells.area_in({0, cut}, {cut, cells.k_tokens}) > 0;
}

/// Whether nothing goes across either side of a token.
bool is_alone(const oracle::Dense& cells, std::int64_t token) {
  return !is_crossed(cells, token) && !is_crossed(cells, token + 1);
}

std::vector<Range> atoms_of(const std::string& mask, std::int64_t tokens) {
  MaskSpec spec;
  spec.name = mask;
  spec.tokens = tokens;
  return mask_atoms(generate_mask(spec).mask, 0);
}

RC_GTEST_PROP(Atoms, EndWhereNoCellGoesAcross, ()) {
  const auto tokens = *rc::gen::inRange<std::int64_t>(1, 30);
  const std::vector<MaskSlice> slices = oracle::random_slices(tokens, tokens, 6);
  std::vector<MaskSlice> kept;  // such that no two meet
  oracle::Dense cells(tokens, tokens);
  for (const MaskSlice& slice : slices) {
    const oracle::Dense own(tokens, tokens, [&](std::int64_t q, std::int64_t k) {
      return oracle::slice_allows(slice, q, k);
    });
    bool meets = false;
    for (std::size_t i = 0; i < cells.cells.size(); ++i) {
      meets = meets || (own.cells[i] != 0 && cells.cells[i] != 0);
    }
    if (meets) continue;
    kept.push_back(slice);
    for (std::size_t i = 0; i < cells.cells.size(); ++i) cells.cells[i] |= own.cells[i];
  }
  std::vector<std::int64_t> cuts;
  for (std::int64_t cut = 1; cut < tokens; ++cut) {
    // Neighbours that are both alone may stay together.
    if (is_crossed(cells, cut)) continue;
    if (is_alone(cells, cut - 1) && is_alone(cells, cut)) continue;
    cuts.push_back(cut);
  }
  RC_PRE(!cuts.empty());
  std::vector<std::int64_t> found;
  std::int64_t end = 0;
  for (const Range atom : mask_atoms(Mask::from_slices(tokens, tokens, kept), 0)) {
    RC_ASSERT(atom.begin == end);
    RC_ASSERT(!atom.empty());
    end = atom.end;
    found.push_back(end);
  }
  RC_ASSERT(end == tokens);
  found.pop_back();
  RC_ASSERT(found == cuts);
}

TEST(Atoms, AreTheDocuments) {
  MaskSpec spec;
  spec.tokens = 8192;
  for (const char* name : {"document", "causal_document", "prefix_lm_document"}) {
    spec.name = name;
    const GeneratedMask generated = generate_mask(spec);
    std::vector<Range> documents;
    std::int64_t begin = 0;
    for (const std::int64_t length : generated.lengths) {
      documents.push_back({begin, begin + length});
      begin += length;
    }
    EXPECT_EQ(mask_atoms(generated.mask, 0), documents) << name;
  }
}

TEST(Atoms, AreTheDocumentsBesidesWhatAllSee) {
  const auto documents = atoms_of("document", 8192);
  EXPECT_EQ(atoms_of("shared_question", 8192), documents);
  EXPECT_EQ(atoms_of("causal_blockwise", 8192), documents);
}

TEST(Atoms, OfAConnectedMaskAreOne) {
  for (const char* name : {"full", "causal", "sliding_window", "sliding_window_causal",
                           "global_sliding_window", "prefix_lm_causal"}) {
    EXPECT_EQ(atoms_of(name, 8192), (std::vector<Range>{{0, 8192}})) << name;
  }
}

TEST(Atoms, ShortOnesAreJoined) {
  const Mask mask = Mask::from_slices(12, 12,
                                      {{0, 2, 0, 2, MaskSliceType::full},
                                       {2, 4, 2, 4, MaskSliceType::full},
                                       {4, 6, 4, 6, MaskSliceType::full},
                                       {6, 12, 6, 12, MaskSliceType::full}});
  EXPECT_EQ(mask_atoms(mask, 3), (std::vector<Range>{{0, 4}, {4, 6}, {6, 12}}));
}

}  // namespace
}  // namespace longca
