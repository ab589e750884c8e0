//! The client against servers that misbehave.
