//! The handshake by which an agent and a collector on another machine prove to each other that they know the same
//! secret, before anything else is sent. The secret itself is never sent; later data is not encrypted.
//!
//! Each side sends [`MAGIC`] and a number that it never used before, the agent first. The collector adds its proof, and
//! the agent answers with its own: a keyed hash of both numbers and of the side that proves.

use std::io::{self, ErrorKind, Read, Write};

/// The first bytes of each side.
pub const MAGIC: [u8; 8] = *b"TENURE-1";
/// Bytes of a number and of a proof.
const SIZE: usize = 32;

/// A number that was never used before.
pub type Nonce = [u8; SIZE];

/// The side that proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The side in the program.
    Agent,
    /// The side that receives.
    Collector,
}

/// A key derived from the content of a secret file.
#[derive(Clone)]
pub struct Secret([u8; SIZE]);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Secret {
    /// The secret of a file with this content, without surrounding blanks; `None` if it has less than 16 bytes.
    pub fn of(content: &[u8]) -> Option<Self> {
        const LEAST: usize = 16;
        let text = content.trim_ascii();
        (text.len() >= LEAST)
            .then(|| Self(blake3::derive_key("tenure agent and collector 1", text)))
    }

    fn proof(&self, side: Side, agent: &Nonce, collector: &Nonce) -> blake3::Hash {
        let mut message = vec![side as u8];
        message.extend(agent);
        message.extend(collector);
        blake3::keyed_hash(&self.0, &message)
    }

    /// Performs the exchange for one side.
    ///
    /// # Errors
    /// The other side does not know the secret, does not answer, or uses another protocol.
    pub fn meet(&self, side: Side, own: &Nonce, mut stream: impl Read + Write) -> io::Result<()> {
        let hello = [&MAGIC[..], own].concat();
        if side == Side::Agent {
            stream.write_all(&hello)?;
        }
        let magic: [u8; MAGIC.len()] = read(&mut stream)?;
        if magic != MAGIC {
            return Err(stranger());
        }
        let other: Nonce = read(&mut stream)?;
        if side == Side::Agent {
            self.verify(Side::Collector, own, &other, &mut stream)?;
            let proof = self.proof(Side::Agent, own, &other);
            return stream.write_all(proof.as_bytes());
        }
        let proof = self.proof(Side::Collector, &other, own);
        stream.write_all(&[&hello, &proof.as_bytes()[..]].concat())?;
        self.verify(Side::Agent, &other, own, &mut stream)
    }

    fn verify(
        &self,
        side: Side,
        agent: &Nonce,
        collector: &Nonce,
        stream: &mut impl Read,
    ) -> io::Result<()> {
        // Compared in constant time.
        let proof = blake3::Hash::from_bytes(read(stream)?);
        match proof == self.proof(side, agent, collector) {
            true => Ok(()),
            false => Err(stranger()),
        }
    }
}

fn read<const COUNT: usize>(stream: &mut impl Read) -> io::Result<[u8; COUNT]> {
    let mut bytes = [0; COUNT];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn stranger() -> io::Error {
    io::Error::new(
        ErrorKind::PermissionDenied,
        "the other side does not know the secret",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    fn meet(agent: &[u8], collector: &[u8]) -> [bool; 2] {
        let (one, other) = UnixStream::pair().unwrap();
        let secret = Secret::of(collector).unwrap();
        let there =
            std::thread::spawn(move || secret.meet(Side::Collector, &[2; 32], &other).is_ok());
        let secret = Secret::of(agent).unwrap();
        let here = secret.meet(Side::Agent, &[1; 32], &one).is_ok();
        drop(one);
        [here, there.join().unwrap()]
    }

    #[test]
    fn both_sides_must_know_the_secret() {
        assert_eq!(
            meet(b"correct horse battery\n", b"correct horse battery"),
            [true; 2]
        );
        assert_eq!(
            meet(b"correct horse battery", b"incorrect horse battery"),
            [false; 2]
        );
        assert!(Secret::of(b"  too short \n").is_none());
    }

    #[test]
    fn an_agent_reports_nothing_to_one_that_repeats_what_it_hears() {
        let (one, mut other) = UnixStream::pair().unwrap();
        let echo = std::thread::spawn(move || {
            let mut bytes = [0; 40];
            other.read_exact(&mut bytes).unwrap();
            let proof = [7; 32];
            other.write_all(&[&bytes[..], &proof].concat()).unwrap();
            let mut rest = Vec::new();
            other.read_to_end(&mut rest).unwrap();
            rest
        });
        let secret = Secret::of(b"correct horse battery").unwrap();
        assert!(secret.meet(Side::Agent, &[1; 32], &one).is_err());
        drop(one);
        assert!(echo.join().unwrap().is_empty());
    }

    #[test]
    fn a_collector_refuses_an_agent_that_begins_with_a_profile() {
        let (mut one, other) = UnixStream::pair().unwrap();
        one.write_all(b"JAVA PROFILE 1.0.2\0").unwrap();
        let secret = Secret::of(b"correct horse battery").unwrap();
        let fault = secret.meet(Side::Collector, &[1; 32], &other);
        assert_eq!(
            fault.map_err(|fault| fault.kind()),
            Err(ErrorKind::PermissionDenied)
        );
    }
}
