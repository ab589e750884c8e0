//! Splits the body of a watch into its lines.
//!
//! Answers "which events are complete?"; `list_watch/event.rs` reads the content of a line. Invariants:
//! 1. A line is complete only with its newline: what is left when the body ends was cut off and is discarded.
//! 2. Empty lines are skipped.
//!
//! Read next: `frames.rs` for the bounds.

use bytes::Bytes;
use memchr::memchr;

use super::{Frame, PartialFrame};

/// Turns body chunks into lines.
///
/// ```
/// # #[cfg(feature = "unstable")] {
/// use actix_informer::unstable::{Frame, LineSplitter};
/// use bytes::Bytes;
///
/// let mut lines = LineSplitter::new(1024);
/// let mut found = Vec::new();
/// lines.push(&Bytes::from_static(b"one\ntw"), &mut found);
/// lines.push(&Bytes::from_static(b"o\nhalf"), &mut found);
/// assert_eq!(found, [Frame::Whole(Bytes::from_static(b"one")), Frame::Whole(Bytes::from_static(b"two"))]);
/// assert_eq!(lines.unfinished(), 4);
/// # }
/// ```
#[derive(Debug)]
pub struct LineSplitter {
    line: PartialFrame,
}

impl LineSplitter {
    /// Keeps at most `limit` bytes of one line.
    pub fn new(limit: usize) -> Self {
        Self { line: PartialFrame::new(limit) }
    }

    /// Appends the lines that this chunk completes.
    pub fn push(&mut self, chunk: &Bytes, lines: &mut Vec<Frame>) {
        let mut start = 0;
        while let Some(length) = memchr(b'\n', &chunk[start..]) {
            let end = start + length;
            let line = self.line.finish(chunk, start, end);
            if !line.is_empty() {
                lines.push(line);
            }
            start = end + 1;
        }
        self.line.push(&chunk[start..]);
    }

    /// How many bytes of an unfinished line have come.
    pub fn unfinished(&self) -> usize {
        self.line.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(chunks: &[Bytes], limit: usize) -> Vec<Frame> {
        let (mut splitter, mut lines) = (LineSplitter::new(limit), Vec::new());
        chunks.iter().for_each(|chunk| splitter.push(chunk, &mut lines));
        lines
    }

    #[test]
    fn a_line_within_one_chunk_is_a_slice_of_it() {
        let chunk = Bytes::from_static(b"first\nsecond\n");
        let lines = split(std::slice::from_ref(&chunk), 64);
        let Frame::Whole(second) = &lines[1] else { panic!("whole") };
        assert_eq!(second.as_ptr(), chunk[6..].as_ptr());
    }

    #[test]
    fn of_a_line_above_the_limit_only_the_head_is_kept_and_the_next_is_whole() {
        let lines = split(&[Bytes::from_static(b"0123"), Bytes::from_static(b"456789\nnext\n")], 6);
        let head = Bytes::from_static(b"012345");
        assert_eq!(lines, [Frame::Oversize { head, size: 10 }, Frame::Whole(Bytes::from_static(b"next"))]);
    }

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_lines(text in "[ab\n]{0,40}", cuts in prop::collection::vec(0usize..41, 0..6)) {
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let chunks: Vec<_> =
                cuts.windows(2).map(|pair| Bytes::copy_from_slice(&text.as_bytes()[pair[0]..pair[1]])).collect();
            let whole_lines = text.rfind('\n').map_or("", |end| &text[..end]);
            let expected: Vec<_> = whole_lines.split('\n').filter(|line| !line.is_empty()).collect();
            let found: Vec<_> = split(&chunks, 64).into_iter().map(|frame| match frame {
                Frame::Whole(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
                Frame::Oversize { .. } => panic!("no line is above the limit"),
            }).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
