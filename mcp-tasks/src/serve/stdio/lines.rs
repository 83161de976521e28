//! Lines, put together from what comes through a pipe.

use std::collections::VecDeque;

use super::id_scanner::{IdScanner, MessageKind};

/// The longest line that is decoded, in bytes with its line break: as long as a body over HTTP may be. A message that goes on
/// without end must not fill the memory.
pub(super) const MAX_LINE: usize = 4 * 1024 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputLine {
    /// With its line break.
    Complete(Vec<u8>),
    /// What is known of one that is longer than [`MAX_LINE`].
    TooLong(MessageKind),
}

#[derive(Debug, Default)]
pub(super) struct LineSplitter {
    /// The beginning of a line that has not ended yet.
    partial: Vec<u8>,
    /// Reads a line that is too long, and is not kept.
    too_long: Option<IdScanner>,
}

impl LineSplitter {
    /// Takes in a chunk, and adds the lines that end in it to `lines`.
    pub(super) fn split(&mut self, chunk: &[u8], lines: &mut VecDeque<InputLine>) {
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            if let Some(scanner) = &mut self.too_long {
                scanner.scan(part);
            } else if self.partial.len() + part.len() > MAX_LINE {
                let mut scanner = IdScanner::default();
                scanner.scan(&std::mem::take(&mut self.partial));
                scanner.scan(part);
                self.too_long = Some(scanner);
            } else {
                self.partial.extend_from_slice(part);
            }
            if part.ends_with(b"\n") {
                lines.extend(self.take());
            }
        }
    }

    /// The last line, if no line break ends it.
    pub(super) fn finish(&mut self) -> Option<InputLine> {
        if !self.partial.is_empty() {
            self.partial.push(b'\n');
        }
        self.take()
    }

    fn take(&mut self) -> Option<InputLine> {
        if let Some(scanner) = self.too_long.take() {
            return Some(InputLine::TooLong(scanner.kind()));
        }
        let line = std::mem::take(&mut self.partial);
        (!line.is_empty()).then_some(InputLine::Complete(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::message::Id;

    #[test]
    fn lines_are_put_together_from_chunks_of_any_size() {
        let text = b"one\n\ntwo\nthree\nrest";
        for size in 1..text.len() {
            let (mut splitter, mut lines) = (LineSplitter::default(), VecDeque::new());
            for chunk in text.chunks(size) {
                splitter.split(chunk, &mut lines);
            }
            let complete = |line: &[u8]| InputLine::Complete(line.to_vec());
            assert_eq!(lines, [&b"one\n"[..], b"\n", b"two\n", b"three\n"].map(complete));
            assert_eq!(splitter.finish(), Some(complete(b"rest\n")));
            assert_eq!(splitter.finish(), None);
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_not_kept_and_the_next_is_read() {
        const CHUNK: usize = 64 * 1024;
        let request = |padding: usize| {
            format!(
                "{{\"method\":\"x\",\"params\":[\"{}\"],\"id\":7}}\n",
                "x".repeat(padding)
            )
        };
        let longest = MAX_LINE - request(0).len();
        for size in [1000, CHUNK, usize::MAX] {
            let (mut splitter, mut lines) = (LineSplitter::default(), VecDeque::new());
            let text = [
                request(longest),
                request(longest + 1),
                request(3 * MAX_LINE),
                request(1),
            ]
            .concat();
            for chunk in text.as_bytes().chunks(size) {
                splitter.split(chunk, &mut lines);
                let capacity = splitter.partial.capacity();
                assert!(capacity <= 2 * MAX_LINE, "{capacity}");
            }
            let too_long = || InputLine::TooLong(MessageKind::Request(Id::Number(7)));
            let complete = |padding| InputLine::Complete(request(padding).into());
            assert_eq!(lines, [complete(longest), too_long(), too_long(), complete(1)]);
        }
    }

    #[test]
    fn a_line_that_is_too_long_may_be_the_last() {
        let (mut splitter, mut lines) = (LineSplitter::default(), VecDeque::new());
        splitter.split(&vec![b'x'; MAX_LINE + 1], &mut lines);
        assert!(lines.is_empty());
        assert_eq!(splitter.finish(), Some(InputLine::TooLong(MessageKind::Unknown)));
    }
}
