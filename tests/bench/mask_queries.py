"""A plug-in that computes nothing: its `supports` compares everything that a mask can be asked with
the mask's cells, and answers with what it found."""

capabilities = {"name": "mask_queries", "dtypes": ["float32"]}


def cells_of(mask, head):
    """Row-major booleans from the intervals of keys, which the C++ side tests against its own."""
    most = max(1, mask.max_row_intervals(head))
    begins, ends = mask.row_intervals(head, most)
    rows, keys = range(mask.tokens_q), range(mask.tokens_k)
    at = [range(q, len(begins), mask.tokens_q) for q in rows]
    return [[any(begins[i] <= k < ends[i] for i in at[q]) for k in keys] for q in rows]


def in_slice(piece, q, k):
    q_begin, q_end, k_begin, k_end, kind = piece
    inside = q_begin <= q < q_end and k_begin <= k < k_end
    below = k - k_end <= q - q_end or kind in ("full", "inverse_causal")
    above = k - k_begin >= q - q_begin or kind in ("full", "causal")
    return inside and below and above


def from_slices(mask, head, q, k):
    found = any(in_slice(piece, q, k) for piece in mask.slices)
    if mask.blocks is None:
        return found
    q_bounds, k_bounds, offsets, indices = mask.blocks
    block_q = max(i for i in range(len(q_bounds)) if q_bounds[i] <= q)
    block_k = max(i for i in range(len(k_bounds)) if k_bounds[i] <= k)
    row = head * (len(q_bounds) - 1) + block_q
    return found and block_k in indices[offsets[row] : offsets[row + 1]]


def from_window(mask, head, q, k):
    left, right = mask.window
    return (left < 0 or q - k <= left) and (right < 0 or k - q <= right)


def from_documents(mask, head, q, k):
    bounds, causal = mask.documents
    same = any(begin <= q < end and begin <= k < end for begin, end in zip(bounds, bounds[1:]))
    return same and (q >= k or not causal)


def from_columns(mask, head, q, k):
    lower_begin, lower_end, upper_begin, upper_end = (
        mask.column_intervals(head)[i * mask.tokens_k + k] for i in range(4)
    )
    return not (lower_begin <= q < lower_end or upper_begin <= q < upper_end)


def tile_class(cells, m, n, i, j):
    tile = [cell for row in cells[i * m : (i + 1) * m] for cell in row[j * n : (j + 1) * n]]
    return 2 if all(tile) else 1 if any(tile) else 0


def disagreement(mask, head):
    cells = cells_of(mask, head)
    queries = {"slices": from_slices}
    if mask.window is not None:
        queries["window"] = from_window
    if mask.documents is not None:
        queries["documents"] = from_documents
    if mask.column_intervals(head) is not None:
        queries["columns"] = from_columns
    for name, query in queries.items():
        for q, row in enumerate(cells):
            for k, cell in enumerate(row):
                if query(mask, head, q, k) != cell:
                    return f"{name} of head {head} disagree at query {q}, key {k}"
    m, n = 5, 7
    columns = -(-mask.tokens_k // n)
    for i, found in enumerate(mask.tiles(m, n, head)):
        if found != tile_class(cells, m, n, *divmod(i, columns)):
            return f"tile {i} of head {head} is not {found}"
    return None


def blocks_in_part(mask):
    """What is asked of the lists without their indices."""
    if mask.blocks is None:
        return None if mask.block_bounds is None else "bounds of no blocks"
    q_bounds, k_bounds, offsets, _ = (list(part) for part in mask.blocks)
    if mask.block_bounds != (q_bounds, k_bounds):
        return f"the bounds are not {mask.block_bounds}"
    return None if list(mask.block_offsets) == offsets else "the offsets are others"


def supports(problem, mask):
    reason = blocks_in_part(mask)
    if reason:
        return reason
    for head in range(mask.heads):
        reason = disagreement(mask, head)
        if reason:
            return reason
    forms = ("window", "documents", "blocks")
    return "agrees: " + " ".join(form for form in forms if getattr(mask, form) is not None)


def plan(problem, mask):
    raise RuntimeError("supports() refuses everything")
