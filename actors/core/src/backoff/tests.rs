//! The waits, one by one and for every number of failures.
