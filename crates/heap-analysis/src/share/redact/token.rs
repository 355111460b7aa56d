//! Replaces contents by tokens: keyed, of the same length, equal exactly if the contents were equal.
//!
//! From 16 bytes on a token is the output of a keyed BLAKE3 over the content (equal tokens for
//! different contents would need a collision of 64 bits or more). Shorter contents go through a keyed
//! permutation of all contents of that length (a Feistel network with BLAKE3 as its round
//! function), so that equality is exact there too. Zeros stay zeros.

use hprof::BasicType;

/// Makes tokens with one key.
#[derive(Clone)]
pub(super) struct Tokens {
    key: [u8; 32],
}

/// The length in bytes from which contents are hashed.
const HASHED: usize = 16;
const ROUNDS: u8 = 8;

impl Tokens {
    pub(super) fn new(key: [u8; 32]) -> Tokens {
        Tokens { key }
    }

    fn stream(&self, domain: u8, content: &[u8], out: &mut [u8]) {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&[domain]);
        hasher.update(&(content.len() as u64).to_le_bytes());
        hasher.update(content);
        hasher.finalize_xof().fill(out);
    }

    /// Replaces the content of an array or a field of this element type.
    pub(super) fn replace(&self, element: BasicType, content: &mut [u8]) {
        if content.iter().all(|b| *b == 0) {
            return;
        }
        match element {
            BasicType::Boolean => self.bits(content),
            _ if content.len() >= HASHED => self.hash(element, content),
            // Zeros are not a valid token: repeat until the result is another one.
            _ => loop {
                self.permute(content);
                if content.iter().any(|b| *b != 0) {
                    break;
                }
            },
        }
    }

    /// Bits stay bits. Up to 63 of them are a number from 1 to the largest one, to which a step that depends on the
    /// key is added, modulo the largest number: the token is neither zero nor the number itself. More bits are
    /// combined with a fixed pad for their length.
    fn bits(&self, content: &mut [u8]) {
        let len = content.len();
        let mut pad = vec![0; len.max(8)];
        self.stream(1, &(len as u64).to_le_bytes(), &mut pad);
        if len > 63 {
            for (bit, pad) in content.iter_mut().zip(pad) {
                *bit = u8::from(*bit != 0) ^ (pad & 1);
            }
            return;
        }
        let circle = (1u64 << len) - 1;
        let number = content.iter().fold(0, |n, b| n << 1 | u64::from(*b != 0));
        if len < 2 {
            content.fill(1);
            return;
        }
        let draw = pad.iter().take(8).fold(0, |n, b| n << 8 | u64::from(*b));
        let step = 1 + draw % (circle - 1);
        let token = 1 + ((u128::from(number - 1) + u128::from(step)) % u128::from(circle)) as u64;
        for (n, bit) in content.iter_mut().rev().enumerate() {
            *bit = (token >> n & 1) as u8;
        }
    }

    /// Letters for texts, bytes for numbers.
    fn hash(&self, element: BasicType, content: &mut [u8]) {
        let old = content.to_vec();
        self.stream(2, &old, content);
        let letter = |b: u8| b'a' + b % 26;
        match element {
            BasicType::Byte => content.iter_mut().for_each(|b| *b = letter(*b)),
            // Eight chars of letters have too few values to stay different.
            BasicType::Char if content.len() >= 2 * HASHED => {
                for unit in content.chunks_exact_mut(2) {
                    (unit[0], unit[1]) = (0, letter(unit[1]));
                }
            }
            _ => {}
        }
    }

    /// A permutation of all contents of this length.
    fn permute(&self, content: &mut [u8]) {
        let len = content.len();
        if len == 1 {
            // Moves through the other 255 values in an order and with a step that depend on the key.
            let mut step = [0u8; 1];
            self.stream(3, &[], &mut step);
            let order = self.order();
            let at = order.iter().position(|b| *b == content[0]).unwrap_or(0);
            content[0] = order[(at + 1 + usize::from(step[0]) % 254) % 255];
            return;
        }
        let (left, right) = content.split_at_mut(len / 2);
        for round in 0..ROUNDS {
            let (from, to) = if round % 2 == 0 {
                (&*left, &mut *right)
            } else {
                (&*right, &mut *left)
            };
            let mut pad = [0u8; HASHED];
            self.stream(
                4 + round,
                &[from, &[len as u8]].concat(),
                &mut pad[..to.len()],
            );
            for (b, pad) in to.iter_mut().zip(pad) {
                *b ^= pad;
            }
        }
    }

    /// The values 1 to 255 in an order that depends on the key.
    fn order(&self) -> [u8; 255] {
        let mut order: [u8; 255] = std::array::from_fn(|n| n as u8 + 1);
        let mut draws = [0u8; 255 * 4];
        self.stream(16, &[], &mut draws);
        for n in (1..255usize).rev() {
            let draw = &draws[n * 4..n * 4 + 4];
            let draw = u32::from_le_bytes([draw[0], draw[1], draw[2], draw[3]]);
            order.swap(n, draw as usize % (n + 1));
        }
        order
    }

    /// Letters of the same length for a name or another text of the file.
    pub(super) fn letters(&self, text: &[u8]) -> Vec<u8> {
        let mut out = vec![0; text.len()];
        self.stream(17, text, &mut out);
        out.iter_mut().for_each(|b| *b = b'a' + *b % 26);
        out
    }
}

/// Whether tokens of this length are letters.
pub(crate) fn has_letters(element: BasicType, content: &[u8]) -> bool {
    match element {
        BasicType::Byte => content.len() >= HASHED,
        BasicType::Char => content.len() >= 2 * HASHED,
        _ => false,
    }
}

/// Whether the content of an array of bytes or chars may be a token: letters, or if it is short, not a text in ASCII. One
/// of two bytes is taken for a text in one of seven cases, one of eight bytes in one of three thousand.
pub(crate) fn is_like_token(element: BasicType, content: &[u8]) -> bool {
    let letters = has_letters(element, content);
    let is_token = |b: u8| match letters {
        true => b.is_ascii_lowercase(),
        false => b == b' ' || b.is_ascii_graphic(),
    };
    let all = match element {
        BasicType::Char => content
            .chunks_exact(2)
            .all(|unit| unit[0] == 0 && is_token(unit[1])),
        _ => content.iter().all(|b| is_token(*b)),
    };
    all == letters
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn tokens_are_known_and_texts_are_not() {
        let tokens = Tokens::new([7; 32]);
        let text = "Correct horse 4, battery staple!";
        for len in [8, 12, 15, 16, 31, 32] {
            let bytes = text.as_bytes()[..len].to_vec();
            let chars: Vec<u8> = bytes.iter().flat_map(|b| [0, *b]).collect();
            for (element, mut content) in [(BasicType::Byte, bytes), (BasicType::Char, chars)] {
                assert!(!is_like_token(element, &content), "{element:?} {len}");
                tokens.replace(element, &mut content);
                assert!(is_like_token(element, &content), "{element:?} {content:?}");
            }
        }
    }

    #[test]
    fn short_tokens_are_permutations() {
        let tokens = Tokens::new([7; 32]);
        let one: HashSet<Vec<u8>> = (0..=255u8)
            .map(|b| {
                let mut content = vec![b];
                tokens.replace(BasicType::Byte, &mut content);
                assert!(b == 0 || content[0] != b, "{b} stays");
                content
            })
            .collect();
        assert_eq!(one.len(), 256);
        let two: HashSet<Vec<u8>> = (0..=65535u16)
            .map(|n| {
                let mut content = n.to_be_bytes().to_vec();
                tokens.replace(BasicType::Byte, &mut content);
                content
            })
            .collect();
        assert_eq!(two.len(), 65536);
    }

    #[test]
    fn tokens_of_bits_are_permutations_too() {
        for key in 0..40 {
            let tokens = Tokens::new([key; 32]);
            for len in 2..10 {
                let all: HashSet<Vec<u8>> = (0..1 << len)
                    .map(|n: u32| {
                        let content: Vec<u8> = (0..len).map(|bit| (n >> bit & 1) as u8).collect();
                        let mut token = content.clone();
                        tokens.replace(BasicType::Boolean, &mut token);
                        assert!(n == 0 || token != content, "{content:?} stays");
                        assert!(token.iter().all(|b| *b < 2), "{token:?}");
                        token
                    })
                    .collect();
                assert_eq!(all.len(), 1 << len);
            }
        }
    }

    proptest! {
        #[test]
        fn tokens_are_equal_where_contents_are(
            a in proptest::collection::vec(0u8..3, 0..40),
            b in proptest::collection::vec(0u8..3, 0..40),
            key in any::<[u8; 32]>(), wide in any::<bool>(),
        ) {
            let tokens = Tokens::new(key);
            let element = if wide { BasicType::Char } else { BasicType::Byte };
            let (mut x, mut y) = (a.clone(), b.clone());
            tokens.replace(element, &mut x);
            tokens.replace(element, &mut y);
            prop_assert_eq!(x.len(), a.len());
            prop_assert_eq!(x == y, a == b);
            if a.len() >= 8 && a.iter().any(|b| *b != 0) {
                prop_assert_ne!(x, a);
            }
        }
    }
}
