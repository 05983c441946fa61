"""The mask of a problem, in the forms that kernels take."""

from ctypes import c_int32, c_int64, c_uint8

from longca_host.tensors import Tensor

SLICE_TYPES = ("full", "causal", "inverse_causal", "bi_causal")
EMPTY, PARTIAL, FULL = range(3)  # classes of tiles


class Mask:
    """Which queries attend to which keys. Valid only during the call that it was passed to."""

    def __init__(self, library, handle):
        self._library = library
        self._handle = handle
        shape = (c_int64 * 3)()
        library.mask_shape(handle, shape)
        self.tokens_q, self.tokens_k, self.heads = shape  # heads: 1 if the mask is the same for all

    def _expect(self, result):
        if result < 0:
            raise RuntimeError(self._library.error())
        return result

    @property
    def slices(self):
        """[(q_begin, q_end, k_begin, k_end, type)] with the type's name."""
        values = (c_int64 * (5 * self._library.mask_slices(self._handle, None)))()
        self._library.mask_slices(self._handle, values)
        return [(*values[i : i + 4], SLICE_TYPES[values[i + 4]]) for i in range(0, len(values), 5)]

    @property
    def window(self):
        """(left, right) as FlashAttention's window_size, -1 for no limit; or None."""
        window = (c_int64 * 2)()
        return (
            tuple(window) if self._expect(self._library.mask_window(self._handle, window)) else None
        )

    @property
    def documents(self):
        """(cu_seqlens, causal): a list from 0 to the tokens, and whether all documents are causal
        (else all are full); None if the mask is not made of documents."""
        causal = c_int32()
        size = self._expect(self._library.mask_documents(self._handle, None, causal))
        if size == 0:
            return None
        bounds = (c_int64 * size)()
        self._library.mask_documents(self._handle, bounds, causal)
        return list(bounds), bool(causal.value)

    def max_row_intervals(self, head=0):
        """The largest number of intervals of keys that a query attends to."""
        return self._expect(self._library.mask_rows(self._handle, head, 0, None, None))

    def row_intervals(self, head=0, max_intervals=2):
        """The keys that each query attends to, as (begins, ends), each an array of int32
        [max_intervals, tokens_q]: query q attends to [begins[i][q], ends[i][q]) for every i."""
        return self.counted_row_intervals(head, max_intervals)[1:]

    def counted_row_intervals(self, head=0, max_intervals=2):
        """(count, begins, ends), by one sweep over the mask: row_intervals, and how many of them a
        query has at most. The others are empty."""
        size = max_intervals * self.tokens_q
        begins, ends = (c_int32 * size)(), (c_int32 * size)()
        count = self._expect(self._library.mask_rows(self._handle, head, max_intervals, begins, ends))
        return count, begins, ends

    def column_intervals(self, head=0):
        """FlashMask's masked rows per key: lt_start, lt_end, ut_start, ut_end as one array of int32
        [4, tokens_k]; None if two intervals do not suffice."""
        columns = (c_int32 * (4 * self.tokens_k))()
        found = self._expect(self._library.mask_columns(self._handle, head, columns))
        return columns if found else None

    def tiles(self, m, n, head=0):
        """EMPTY, PARTIAL or FULL for each tile of m queries and n keys: an array of uint8
        [ceil(tokens_q / m), ceil(tokens_k / n)]."""
        count = -(-self.tokens_q // m) * -(-self.tokens_k // n)
        classes = (c_uint8 * count)()
        self._expect(self._library.mask_tiles(self._handle, head, m, n, classes))
        return classes

    @property
    def blocks(self):
        """(q_bounds, k_bounds, offsets, indices) of a block-sparse mask, arrays as in mask.h; else
        None."""
        sizes = self._block_sizes()
        if sizes[0] == 0:
            return None
        lists = [(c_int64 * size)() for size in sizes[:3]] + [(c_int32 * sizes[3])()]
        self._library.mask_blocks(self._handle, *lists)
        return tuple(lists)

    @property
    def block_bounds(self):
        """(q_bounds, k_bounds) of a block-sparse mask, lists from 0 to the tokens; else None."""
        sizes = self._block_sizes()
        if sizes[0] == 0:
            return None
        bounds = [(c_int64 * size)() for size in sizes[:2]]
        self._library.mask_blocks(self._handle, *bounds, None, None)
        return tuple(list(part) for part in bounds)

    @property
    def block_offsets(self):
        """Where the list of kept blocks of each (list, query block) begins, and the end of all."""
        offsets = (c_int64 * self._block_sizes()[2])()
        self._library.mask_blocks(self._handle, None, None, offsets, None)
        return offsets

    @property
    def block_bits(self):
        """The kept blocks of a block-sparse mask in device memory: (tensor, key blocks), the tensor
        [lists, query blocks, words] of 32 bits each, to be viewed as int32 (its dtype is float32).
        Bit b of word w is key block 32 w + b."""
        shape = (c_int64 * 4)()
        data = self._library.mask_block_bits(self._handle, shape)
        if not data:
            raise RuntimeError(self._library.error())
        lists, rows, columns, words = shape
        strides = (rows * words, words, 1)
        return Tensor(data, (lists, rows, words), strides, "float32", "cuda"), columns

    def _block_sizes(self):
        sizes = (c_int64 * 4)()
        self._library.mask_block_sizes(self._handle, sizes)
        return sizes
