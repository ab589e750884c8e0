//! Writes the log lines of a source; `informer_core::reflector` decides which, when, and in which words.

use informer_core::meta::SourceId;
use informer_core::reflector::{LogLevel, LogLine};

/// Writes one line, with the names of informer, source and resource as fields.
pub(super) fn write(informer: &str, source: &SourceId, resource: &str, line: &LogLine) {
    let LogLine { reason, text, .. } = line;
    match line.level {
        LogLevel::Debug => {
            tracing::debug!(target: "actix_informer::informer", informer, %source, resource, reason, "{text}")
        }
        LogLevel::Info => {
            tracing::info!(target: "actix_informer::informer", informer, %source, resource, reason, "{text}")
        }
        _ => {
            tracing::warn!(target: "actix_informer::informer", informer, %source, resource, reason, "{text}")
        }
    }
}
