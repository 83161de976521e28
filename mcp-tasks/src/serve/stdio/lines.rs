//! Lines, put together from what comes through a pipe.

use super::id_scanner::{IdScanner, MessageKind};

/// The longest line that is taken, as long as a body over HTTP may be. A message that goes on without end must not fill the
/// memory.
pub(super) const LONGEST: usize = 4 * 1024 * 1024;

/// A line that has ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// With its line break, unless it is the last and has none.
    Whole(&'a [u8]),
    /// What is known of one that was too long.
    Long(MessageKind),
}

/// Puts chunks together to lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// A line that has not ended yet.
    begun: Vec<u8>,
    /// What was seen of a line that is too long, and is not kept.
    long: Option<IdScanner>,
}

impl Lines {
    /// Takes in a chunk. `line` gets the lines that end in it.
    pub(super) fn split(&mut self, chunk: &[u8], mut line: impl FnMut(Line<'_>)) {
        for part in chunk.split_inclusive(|byte| *byte == b'\n') {
            let ends = part.ends_with(b"\n");
            if let Some(scanner) = &mut self.long {
                scanner.scan(part);
            } else if self.begun.len() + part.len() > LONGEST {
                let mut scanner = IdScanner::default();
                scanner.scan(&std::mem::take(&mut self.begun));
                scanner.scan(part);
                self.long = Some(scanner);
            } else {
                self.begun.extend_from_slice(part);
            }
            if ends {
                line(match self.long.take() {
                    Some(scanner) => Line::Long(scanner.kind()),
                    None => Line::Whole(&self.begun),
                });
                self.begun.clear();
            }
        }
    }

    /// The last line, where the text ends without its end.
    pub(super) fn end(&mut self, line: impl FnOnce(Line<'_>)) {
        let begun = std::mem::take(&mut self.begun);
        match self.long.take() {
            Some(scanner) => line(Line::Long(scanner.kind())),
            None if begun.is_empty() => {}
            None => line(Line::Whole(&begun)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::message::Id;

    fn whole(line: Line<'_>) -> Vec<u8> {
        match line {
            Line::Whole(line) => line.to_vec(),
            Line::Long(kind) => panic!("none is long: {kind:?}"),
        }
    }

    #[test]
    fn lines_are_put_together_from_chunks_of_any_size() {
        let text = b"one\n\ntwo\nthree\nrest";
        for size in 1..text.len() {
            let (mut lines, mut out) = (Lines::default(), Vec::new());
            for chunk in text.chunks(size) {
                lines.split(chunk, |line| out.push(whole(line)));
            }
            assert_eq!(out, [&b"one\n"[..], b"\n", b"two\n", b"three\n"]);
            lines.end(|line| out.push(whole(line)));
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
        let longest = LONGEST - request(0).len();
        for size in [1000, CHUNK, usize::MAX] {
            let (mut lines, mut kept, mut long) = (Lines::default(), Vec::new(), Vec::new());
            let text = [request(longest), request(longest + 1), request(3 * LONGEST), request(1)].concat();
            for chunk in text.as_bytes().chunks(size) {
                lines.split(chunk, |line| match line {
                    Line::Whole(line) => kept.push(line.len()),
                    Line::Long(kind) => long.push(kind),
                });
                assert!(lines.begun.capacity() <= 2 * LONGEST, "{}", lines.begun.capacity());
            }
            assert_eq!(kept, [LONGEST, request(1).len()]);
            assert_eq!(
                long,
                [MessageKind::Request(Id::Number(7)), MessageKind::Request(Id::Number(7))]
            );
        }
    }

    #[test]
    fn a_line_that_is_too_long_may_be_the_last() {
        let mut lines = Lines::default();
        lines.split(&vec![b'x'; LONGEST + 1], |_| panic!("no line ends"));
        let mut kind = None;
        lines.end(|line| {
            if let Line::Long(long) = line {
                kind = Some(long);
            }
        });
        assert_eq!(kind, Some(MessageKind::Unknown));
    }

    const CHUNK: usize = 64 * 1024;
}
