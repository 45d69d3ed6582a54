//! Lines of bounded length: one that is too long is passed over without being held in memory.

use std::io::{self, BufRead};

/// The longest line that is read, in bytes: 64 MiB.
pub(super) const LONGEST_LINE: usize = 64 << 20;

/// What some editors write at the start of a UTF-8 file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The lines of an input that are not blank, with their numbers from 1.
pub(in crate::cli) struct Lines<R> {
    input: R,
    number: u64,
    longest: usize,
}

impl<R: BufRead> Lines<R> {
    pub(in crate::cli) fn new(input: R) -> Self {
        Self { input, number: 0, longest: LONGEST_LINE }
    }

    /// The next line that is not blank, or why it is none; `None` at the end of the input.
    pub(in crate::cli) fn next(&mut self) -> io::Result<Option<(u64, Result<String, String>)>> {
        loop {
            let mut line = Vec::new();
            let mut length = 0_usize;
            loop {
                let buffer = self.input.fill_buf()?;
                if buffer.is_empty() {
                    break;
                }
                let (end, taken) = match buffer.iter().position(|byte| *byte == b'\n') {
                    Some(at) => (true, at + 1),
                    None => (false, buffer.len()),
                };
                length += taken;
                if length <= self.longest {
                    line.extend_from_slice(&buffer[..taken]);
                }
                self.input.consume(taken);
                if end {
                    break;
                }
            }
            if length == 0 {
                return Ok(None);
            }
            self.number += 1;
            if self.number == 1 && line.starts_with(BYTE_ORDER_MARK) {
                line.drain(..BYTE_ORDER_MARK.len());
            }
            if length > self.longest {
                let reason = format!("The line has {length} bytes; at most {} are read", self.longest);
                return Ok(Some((self.number, Err(reason))));
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let text = String::from_utf8(line).map_err(|error| format!("The line is not UTF-8: {error}"));
            return Ok(Some((self.number, text)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blank_lines_are_counted_and_long_ones_are_passed_over() {
        let input = "\u{feff}a\n\n  \nlonger than eight\nb";
        let mut lines = Lines { input: io::BufReader::with_capacity(3, input.as_bytes()), number: 0, longest: 8 };
        let mut all = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            all.push(line);
        }
        let long = Err("The line has 18 bytes; at most 8 are read".to_owned());
        assert_eq!(all, [(1, Ok("a\n".to_owned())), (4, long), (5, Ok("b".to_owned()))]);
    }
}
