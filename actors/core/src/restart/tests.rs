//! Who is restarted, and when it ends.
