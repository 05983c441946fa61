"""longca inside other libraries."""
