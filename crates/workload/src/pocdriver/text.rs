//! Text fields: pieces of a sentence of 50 words, repeated for ever.

/// The sentence; one space stands between its repetitions.
const SENTENCE: &str = "Lorem ipsum dolor sit amet, consetetur sadipscing elitr, sed diam nonumy eirmod tempor invidunt ut \
    labore et dolore magna aliquyam erat, sed diam voluptua. At vero eos et accusam et justo duo dolores et ea rebum. Stet \
    clita kasd gubergren, no sea takimata sanctus est Lorem ipsum dolor sit amet.";

/// Characters from one repetition to the next.
pub(super) const PERIOD: usize = SENTENCE.len() + 1;

/// Characters of the sentence that a text is cut from, before the cut to its length; a longer text repeats them.
const PIECE: usize = 512;

/// The texts of a length, by where they start.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Texts {
    texts: Vec<Box<[u8]>>,
    /// For each character of a period: the number of the text that a draw of it gives.
    of: Vec<u16>,
}

impl Texts {
    /// Texts of less than `chars` characters, which are at least 11. A draw of a character gives what begins with the next
    /// word and ends with the word that is under way 512 characters on, doubled until it is long enough, cut to `chars`
    /// and then back to its last space.
    pub fn new(chars: usize) -> Self {
        let long = format!("{SENTENCE} ").repeat(PIECE / PERIOD + 3).into_bytes();
        let next_space = |at: usize| at + long[at..].iter().position(|&b| b == b' ').unwrap_or(0);
        let (mut texts, mut of): (Vec<Box<[u8]>>, _) = (Vec::new(), Vec::new());
        for character in 0..PERIOD {
            let mut text = long[next_space(character) + 1..next_space(character + PIECE)].to_vec();
            while text.len() < chars {
                text.extend_from_within(..);
            }
            text.truncate(chars);
            text.truncate(text.iter().rposition(|&b| b == b' ').unwrap_or(chars));
            // Texts of neighbours are equal more often than not.
            if texts.last().is_none_or(|last| **last != *text) {
                texts.push(text.into());
            }
            of.push(texts.len() as u16 - 1);
        }
        Texts { texts, of }
    }

    /// Length of the longest text.
    pub fn longest_text(&self) -> usize {
        self.texts.iter().map(|text| text.len()).max().unwrap_or(0)
    }

    /// The text for 64 random bits.
    #[inline]
    pub fn pick_text(&self, bits: u64) -> &[u8] {
        // Of 32 bits, so that callers can make two draws of one word.
        let character = ((bits & 0xFFFF_FFFF) * PERIOD as u64) >> 32;
        &self.texts[usize::from(self.of[character as usize])]
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
            (0..PERIOD as u64).map(|c| texts.pick_text(((c << 32) + (1 << 31)) / PERIOD as u64)).collect();
        let different: HashSet<&[u8]> = all.iter().copied().collect();
        // Two words begin equal texts: "dolor sit amet" occurs twice, but is followed differently.
        assert!((48..=50).contains(&different.len()), "{}", different.len());
        let lengths: Vec<usize> = all.iter().map(|t| t.len()).collect();
        assert_eq!((lengths.iter().min(), lengths.iter().max()), (Some(&20), Some(&29)));
        let mean = lengths.iter().sum::<usize>() as f64 / lengths.len() as f64;
        assert!((mean - 26.27).abs() < 0.02, "{mean}");
    }

    /// The original cuts 501 to 521 characters out of its text and doubles them: a longer text does not go on with the
    /// sentence but begins again, without a space.
    #[test]
    fn a_long_text_repeats_its_piece() {
        let texts = Texts::new(2_000);
        let text = |character: u64| texts.pick_text(((character << 32) + (1 << 31)) / PERIOD as u64);
        // From "ipsum" on: 507 characters, which end with the word at character 512.
        assert!(text(0).starts_with(b"ipsum dolor sit amet, consetetur"));
        assert_eq!(&text(0)[500..520], &[&text(0)[500..507], &text(0)[..13]].concat()[..]);
        assert_eq!(text(0)[507..1014], text(0)[..507]);
        assert!((0..PERIOD as u64).all(|c| (1_980..2_000).contains(&text(c).len())));
    }

    #[test]
    fn the_shortest_and_a_long_text_hold_words() {
        for chars in [11usize, 12, 500, 5_000] {
            let texts = Texts::new(chars);
            for c in 0..PERIOD as u64 {
                let text = texts.pick_text((c << 32) / PERIOD as u64);
                assert!(!text.is_empty() && text.len() < chars.max(12), "{chars}: {}", text.len());
            }
        }
    }
}
