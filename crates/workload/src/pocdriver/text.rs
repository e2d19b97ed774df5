//! Text fields: pieces of a sentence of 50 words, repeated for ever.

/// The sentence; one space stands between its repetitions.
const SENTENCE: &str = "Lorem ipsum dolor sit amet, consetetur sadipscing elitr, sed diam nonumy eirmod tempor invidunt ut \
    labore et dolore magna aliquyam erat, sed diam voluptua. At vero eos et accusam et justo duo dolores et ea rebum. Stet \
    clita kasd gubergren, no sea takimata sanctus est Lorem ipsum dolor sit amet.";

/// Characters from one repetition to the next.
pub(super) const PERIOD: usize = SENTENCE.len() + 1;

/// The 50 texts of a length, by where they start.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Texts {
    long: Vec<u8>,
    /// For each character of a period: start and length of the text that a draw of it gives.
    pieces: Vec<(u16, u32)>,
}

impl Texts {
    /// Texts of at most `chars` characters. A draw of a character gives the text that begins with the next word, cut to
    /// `chars` and then back to its last space.
    pub fn new(chars: usize) -> Self {
        let mut long = Vec::new();
        while long.len() < chars + 2 * PERIOD {
            long.extend_from_slice(SENTENCE.as_bytes());
            long.push(b' ');
        }
        let piece = |character: usize| {
            let start = character + long[character..].iter().position(|&b| b == b' ').unwrap_or(0) + 1;
            let whole = &long[start..start + chars];
            let end = whole.iter().rposition(|&b| b == b' ').unwrap_or(chars);
            (start as u16, end as u32)
        };
        let pieces = (0..PERIOD).map(piece).collect();
        Texts { long, pieces }
    }

    /// Length of the longest text.
    pub fn longest(&self) -> usize {
        self.pieces.iter().map(|(_, bytes)| *bytes as usize).max().unwrap_or(0)
    }

    /// The text for 64 random bits.
    #[inline]
    pub fn pick(&self, bits: u64) -> &[u8] {
        // Of 32 bits, so that callers can make two draws of one word.
        let character = ((bits & 0xFFFF_FFFF) * PERIOD as u64) >> 32;
        let (start, bytes) = self.pieces[character as usize];
        &self.long[usize::from(start)..usize::from(start) + bytes as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn fifty_texts_of_the_original_lengths() {
        assert_eq!((PERIOD, SENTENCE.split(' ').count()), (296, 50));
        let texts = Texts::new(30);
        let all: Vec<&[u8]> =
            (0..PERIOD as u64).map(|c| texts.pick(((c << 32) + (1 << 31)) / PERIOD as u64)).collect();
        let different: HashSet<&[u8]> = all.iter().copied().collect();
        // Two words begin equal texts: "dolor sit amet" occurs twice, but is followed differently.
        assert!((48..=50).contains(&different.len()), "{}", different.len());
        let lengths: Vec<usize> = all.iter().map(|t| t.len()).collect();
        assert_eq!((lengths.iter().min(), lengths.iter().max()), (Some(&20), Some(&29)));
        let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
        assert!((mean - 26.27).abs() < 0.02, "{mean}");
    }

    #[test]
    fn the_shortest_and_a_long_text_hold_words() {
        for chars in [11usize, 12, 500, 5_000] {
            let texts = Texts::new(chars);
            for c in 0..PERIOD as u64 {
                let text = texts.pick((c << 32) / PERIOD as u64);
                assert!(!text.is_empty() && text.len() < chars.max(12), "{chars}: {}", text.len());
            }
        }
    }
}
