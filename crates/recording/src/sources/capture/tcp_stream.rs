//! One direction of a TCP connection, put in order.

/// Bytes that wait for those before them at most.
const WAITING_BYTES: usize = 1 << 20;

/// What comes out of a direction.
pub(super) enum Piece<'a> {
    Bytes(&'a [u8]),
    /// Bytes are missing here.
    Gap,
}

/// A direction.
#[derive(Default)]
pub(super) struct TcpStream {
    /// The number of the next byte; `None` before the first.
    next: Option<u32>,
    /// Segments behind a hole, by their numbers.
    waiting: Vec<(u32, Vec<u8>)>,
    waiting_bytes: usize,
    /// The number behind the last byte, once that is known.
    end: Option<u32>,
}

/// Distance from one number to another, which go round.
fn distance(from: u32, to: u32) -> i32 {
    to.wrapping_sub(from) as i32
}

impl TcpStream {
    /// It begins with this number.
    pub fn begin_at(&mut self, number: u32) {
        self.next = Some(number);
    }

    /// Returns whether it has begun.
    pub fn has_begun(&self) -> bool {
        self.next.is_some()
    }

    /// Returns whether bytes are missing before those that wait.
    #[cfg(test)]
    pub fn has_hole(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns whether everything up to `number`, which the other side acknowledges, has come out.
    pub fn has_reached(&self, number: u32) -> bool {
        let number = self.without_fin(number);
        self.next.is_none_or(|next| distance(next, number) <= 0)
    }

    /// A FIN counts as a byte: who acknowledges it acknowledges one more than there are.
    fn without_fin(&self, number: u32) -> u32 {
        self.end.filter(|end| end.wrapping_add(1) == number).unwrap_or(number)
    }

    /// Its last byte is the one before this number.
    pub fn note_end(&mut self, number: u32) {
        self.end = Some(number);
    }

    /// Returns whether it has come to its end.
    pub fn has_ended(&self) -> bool {
        self.end.is_some_and(|end| self.has_reached(end))
    }

    /// Takes a segment of which `missing` bytes behind `bytes` were not kept; hands over what is in order.
    pub fn push_segment<E>(
        &mut self,
        number: u32,
        mut bytes: &[u8],
        missing: u32,
        out: &mut impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let next = *self.next.get_or_insert(number);
        let ahead = distance(next, number);
        if ahead > 0 {
            // One that was cut is found as a hole behind it.
            let at = self.waiting.partition_point(|(other, _)| distance(*other, number) > 0);
            self.waiting.insert(at, (number, bytes.to_vec()));
            self.waiting_bytes += bytes.len() + 64;
            return if self.waiting_bytes > WAITING_BYTES { self.skip_hole(out) } else { Ok(()) };
        }
        let end = number.wrapping_add(bytes.len() as u32).wrapping_add(missing);
        if ahead < 0 {
            let old = ahead.unsigned_abs() as usize;
            if old >= bytes.len() + missing as usize {
                return Ok(());
            }
            bytes = bytes.get(old..).unwrap_or_default();
        }
        if !bytes.is_empty() {
            self.next = Some(next.wrapping_add(bytes.len() as u32));
            out(Piece::Bytes(bytes))?;
        }
        if missing > 0 {
            self.next = Some(end);
            out(Piece::Gap)?;
        }
        self.hand_over_waiting(out)
    }

    /// Hands over what waited for what has come now.
    fn hand_over_waiting<E>(&mut self, out: &mut impl FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        while let (Some((number, _)), Some(next)) = (self.waiting.first(), self.next) {
            let behind = distance(*number, next);
            if behind < 0 {
                return Ok(());
            }
            let (_, bytes) = self.waiting.remove(0);
            self.waiting_bytes -= bytes.len() + 64;
            if let Some(rest) = bytes.get(behind as usize..).filter(|rest| !rest.is_empty()) {
                self.next = Some(next.wrapping_add(rest.len() as u32));
                out(Piece::Bytes(rest))?;
            }
        }
        Ok(())
    }

    /// Gives up what is missing before those that wait.
    pub fn skip_hole<E>(&mut self, out: &mut impl FnMut(Piece<'_>) -> Result<(), E>) -> Result<(), E> {
        if let Some((number, _)) = self.waiting.first() {
            self.next = Some(*number);
            out(Piece::Gap)?;
        }
        self.hand_over_waiting(out)
    }

    /// Gives up everything before `number`, which the other side has got.
    pub fn skip_to<E>(
        &mut self,
        number: u32,
        out: &mut impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let number = self.without_fin(number);
        while !self.has_reached(number) {
            match self.waiting.first() {
                Some((first, _)) if distance(*first, number) > 0 => self.skip_hole(out)?,
                _ => {
                    self.next = Some(number);
                    out(Piece::Gap)?;
                    self.hand_over_waiting(out)?;
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    fn push(stream: &mut TcpStream, number: u32, bytes: &[u8], missing: u32, into: &mut Vec<u8>) {
        let mut out = |piece: Piece<'_>| -> Result<(), Infallible> {
            match piece {
                Piece::Bytes(bytes) => into.extend_from_slice(bytes),
                Piece::Gap => into.push(b'?'),
            }
            Ok(())
        };
        let Ok(()) = stream.push_segment(number, bytes, missing, &mut out);
    }

    fn got(segments: &[(u32, &str, u32)]) -> String {
        let (mut stream, mut all) = (TcpStream::default(), Vec::new());
        stream.begin_at(u32::MAX - 2);
        segments.iter().for_each(|(at, bytes, missing)| {
            push(&mut stream, (u32::MAX - 2).wrapping_add(*at), bytes.as_bytes(), *missing, &mut all);
        });
        String::from_utf8(all).unwrap()
    }

    #[test]
    fn segments_are_put_in_order() {
        assert_eq!(got(&[(0, "abc", 0), (3, "def", 0)]), "abcdef");
        assert_eq!(got(&[(3, "def", 0), (6, "g", 0), (0, "abc", 0)]), "abcdefg");
        // Sent again, whole and in other pieces.
        assert_eq!(got(&[(0, "abc", 0), (0, "abc", 0), (1, "bcde", 0), (5, "f", 0)]), "abcdef");
        assert_eq!(got(&[(4, "ef", 0), (2, "cde", 0), (0, "abc", 0), (6, "g", 0)]), "abcdefg");
        // Cut by the capture.
        assert_eq!(got(&[(0, "ab", 4), (6, "gh", 0)]), "ab?gh");
        assert_eq!(got(&[(0, "abc", 0), (1, "bcd", 2), (6, "g", 0)]), "abcd?g");
    }

    #[test]
    fn holes_are_skipped_when_they_are_known_to_stay() {
        let (mut stream, mut all) = (TcpStream::default(), Vec::new());
        stream.begin_at(0);
        push(&mut stream, 0, b"abc", 0, &mut all);
        push(&mut stream, 5, b"fg", 0, &mut all);
        assert!(stream.has_hole() && !stream.has_reached(5));
        let skip = |stream: &mut TcpStream, number: u32, all: &mut Vec<u8>| {
            let mut out = |piece: Piece<'_>| -> Result<(), Infallible> {
                match piece {
                    Piece::Bytes(bytes) => all.extend_from_slice(bytes),
                    Piece::Gap => all.push(b'?'),
                }
                Ok(())
            };
            let Ok(()) = stream.skip_to(number, &mut out);
        };
        skip(&mut stream, 7, &mut all);
        assert_eq!(all, b"abc?fg");
        skip(&mut stream, 9, &mut all);
        push(&mut stream, 9, b"jk", 0, &mut all);
        assert_eq!(all, b"abc?fg?jk");
        stream.note_end(13);
        assert!(!stream.has_ended() && !stream.has_reached(14));
        // An acknowledged FIN is one more.
        skip(&mut stream, 14, &mut all);
        assert_eq!(all, b"abc?fg?jk?");
        assert!(stream.has_ended() && stream.has_reached(14) && !stream.has_reached(15));
        skip(&mut stream, 14, &mut all);
        assert_eq!(all, b"abc?fg?jk?");
        // Too much waits.
        let large = vec![b'x'; WAITING_BYTES];
        push(&mut stream, 20, &large, 0, &mut all);
        assert!(all.ends_with(b"x") && !stream.has_hole());
    }

    proptest! {
        #[test]
        fn any_order_gives_the_bytes(
            bytes in prop::collection::vec(any::<u8>(), 1..300),
            cuts in prop::collection::vec((0usize..300, 1usize..80), 0..40),
            begin in any::<u32>(),
        ) {
            let (mut stream, mut all) = (TcpStream::default(), Vec::new());
            stream.begin_at(begin);
            for (at, length) in &cuts {
                let at = (*at).min(bytes.len());
                let end = (at + length).min(bytes.len());
                push(&mut stream, begin.wrapping_add(at as u32), &bytes[at..end], 0, &mut all);
            }
            for (at, part) in bytes.chunks(7).enumerate() {
                push(&mut stream, begin.wrapping_add(7 * at as u32), part, 0, &mut all);
            }
            prop_assert_eq!(&all, &bytes);
            prop_assert!(!stream.has_hole());
        }
    }
}
