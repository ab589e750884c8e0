//! The coalescing table, row by row.
