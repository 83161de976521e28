//! Lines, put together from what comes through a pipe.

use super::id_scanner::{IdScanner, MessageKind};

/// The longest line that is taken, as long as a body over HTTP may be. A message that goes on without end must not fill the
/// memory.
pub(super) const MAX_LINE: usize = 4 * 1024 * 1024;

/// A line that has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InputLine<'a> {
    /// With its line break, unless it is the last and has none.
    Complete(&'a [u8]),
    /// What is known of one that was too long.
    TooLong(MessageKind),
}

/// Puts chunks together to lines.
#[derive(Debug, Default)]
pub(super) struct LineSplitter {
    /// A line that has not ended yet.
    partial: Vec<u8>,
    /// What was seen of a line that is too long, and is not kept.
    too_long: Option<IdScanner>,
}

impl LineSplitter {
    /// Takes in a chunk. `line` gets the lines that end in it.
    pub(super) fn split(&mut self, chunk: &[u8], mut line: impl FnMut(InputLine<'_>)) {
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            let ends = part.ends_with(b"\n");
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
            if ends {
                line(match self.too_long.take() {
                    Some(scanner) => InputLine::TooLong(scanner.kind()),
                    None => InputLine::Complete(&self.partial),
                });
                self.partial.clear();
            }
        }
    }

    /// The last line, where the text ends without its end.
    pub(super) fn end(&mut self, line: impl FnOnce(InputLine<'_>)) {
        let partial = std::mem::take(&mut self.partial);
        match self.too_long.take() {
            Some(scanner) => line(InputLine::TooLong(scanner.kind())),
            None if partial.is_empty() => {}
            None => line(InputLine::Complete(&partial)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::message::Id;

    fn complete(line: InputLine<'_>) -> Vec<u8> {
        match line {
            InputLine::Complete(line) => line.to_vec(),
            InputLine::TooLong(kind) => panic!("none is long: {kind:?}"),
        }
    }

    #[test]
    fn lines_are_put_together_from_chunks_of_any_size() {
        let text = b"one\n\ntwo\nthree\nrest";
        for size in 1..text.len() {
            let (mut lines, mut out) = (LineSplitter::default(), Vec::new());
            for chunk in text.chunks(size) {
                lines.split(chunk, |line| out.push(complete(line)));
            }
            assert_eq!(out, [&b"one\n"[..], b"\n", b"two\n", b"three\n"]);
            lines.end(|line| out.push(complete(line)));
            assert_eq!(out.pop().unwrap(), b"rest");
            lines.end(|_| panic!("it has ended"));
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_not_kept_and_the_next_is_read() {
        let request = |padding: usize| {
            format!(
                "{{\"method\":\"x\",\"params\":[\"{}\"],\"id\":7}}\n",
                "x".repeat(padding)
            )
        };
        let longest = MAX_LINE - request(0).len();
        for size in [1000, CHUNK, usize::MAX] {
            let (mut lines, mut kept, mut long) = (LineSplitter::default(), Vec::new(), Vec::new());
            let text = [
                request(longest),
                request(longest + 1),
                request(3 * MAX_LINE),
                request(1),
            ]
            .concat();
            for chunk in text.as_bytes().chunks(size) {
                lines.split(chunk, |line| match line {
                    InputLine::Complete(line) => kept.push(line.len()),
                    InputLine::TooLong(kind) => long.push(kind),
                });
                assert!(lines.partial.capacity() <= 2 * MAX_LINE, "{}", lines.partial.capacity());
            }
            assert_eq!(kept, [MAX_LINE, request(1).len()]);
            assert_eq!(
                long,
                [MessageKind::Request(Id::Number(7)), MessageKind::Request(Id::Number(7))]
            );
        }
    }

    #[test]
    fn a_line_that_is_too_long_may_be_the_last() {
        let mut lines = LineSplitter::default();
        lines.split(&vec![b'x'; MAX_LINE + 1], |_| panic!("no line ends"));
        let mut kind = None;
        lines.end(|line| {
            if let InputLine::TooLong(long) = line {
                kind = Some(long);
            }
        });
        assert_eq!(kind, Some(MessageKind::Unknown));
    }

    const CHUNK: usize = 64 * 1024;
}
