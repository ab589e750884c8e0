//! Snapshots read alone: order, agreement, differences.
