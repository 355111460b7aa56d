//! Dumps compressed with Zstandard, xz or bzip2: one stream, or several in succession.

use super::{BUFFER, MAGIC, Unpack};
use bzip2::bufread::MultiBzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::fs::File;
use std::io::{self, Read, Write};

/// Memory that a stream may request before any of it is decoded, in KiB. `xz -9` and `zstd --ultra` need less.
const MOST_MEMORY_KIB: u32 = 128 << 10;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Bzip2,
    Xz,
    Zstandard,
}

impl Format {
    /// The format of the bytes, by the magic bytes at the beginning.
    pub(super) fn of(data: &[u8]) -> Option<Format> {
        let marks: [(&[u8], Format); 3] = [
            (b"BZh", Format::Bzip2),
            (b"\xfd7zXZ\0", Format::Xz),
            (b"\x28\xb5\x2f\xfd", Format::Zstandard),
        ];
        let found = marks.iter().find(|(mark, _)| data.starts_with(mark));
        found.map(|(_, format)| *format)
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Format::Bzip2 => "bzip2",
            Format::Xz => "xz",
            Format::Zstandard => "zstd",
        }
    }

    pub(super) fn decoder(self, data: &[u8]) -> Box<dyn Read + '_> {
        match self {
            Format::Bzip2 => Box::new(MultiBzDecoder::new(data)),
            Format::Xz => Box::new(XzReader::new_mem_limit(data, true, MOST_MEMORY_KIB)),
            Format::Zstandard => Box::new(Frames {
                rest: Some(data),
                current: None,
            }),
        }
    }

    /// Whether these first bytes decode to the beginning of a dump, or to a prefix of it.
    pub(super) fn begins_like_a_dump(self, data: &[u8]) -> bool {
        let mut head = Vec::new();
        // An error after the first bytes is reported later, when everything is decoded.
        let _ = self
            .decoder(data)
            .take(MAGIC.len() as u64)
            .read_to_end(&mut head);
        MAGIC.starts_with(&head)
    }

    /// Decodes everything into `out`; returns why it could not be decoded to its end, if so. Decoding ends if the
    /// content does not begin like a dump, so that other data cannot fill the disk.
    ///
    /// # Errors
    /// When `out` cannot be written, or the caller cancels.
    pub(super) fn decode(
        self,
        data: &[u8],
        out: &mut File,
        unpack: &Unpack<'_>,
    ) -> io::Result<Option<String>> {
        let mut decoder = self.decoder(data);
        let mut buffer = vec![0u8; BUFFER];
        let mut done = 0;
        loop {
            unpack.step(done, 0)?;
            let count = match decoder.read(&mut buffer) {
                Ok(0) => return Ok(None),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Ok(Some(error.to_string())),
            };
            out.write_all(&buffer[..count])?;
            let head = &buffer[..count.min(MAGIC.len())];
            if done == 0 && !MAGIC.starts_with(head) {
                return Ok(None);
            }
            done += count as u64;
        }
    }
}

/// Bytes before the content of a skippable frame.
const SKIPPED_HEADER: usize = 8;

/// Frames of Zstandard, including skippable ones.
struct Frames<'d> {
    rest: Option<&'d [u8]>,
    current: Option<StreamingDecoder<&'d [u8], FrameDecoder>>,
}

impl Read for Frames<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(current) = &mut self.current {
                let count = current.read(into)?;
                if count > 0 || into.is_empty() {
                    return Ok(count);
                }
                self.rest = self.current.take().map(StreamingDecoder::into_inner);
            }
            let Some(rest) = self.rest.take().filter(|rest| !rest.is_empty()) else {
                return Ok(0);
            };
            let window = u64::from(MOST_MEMORY_KIB) << 10;
            match StreamingDecoder::new_with_max_window_size(rest, window) {
                Ok(decoder) => self.current = Some(decoder),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let next = SKIPPED_HEADER.saturating_add(length as usize);
                    self.rest = Some(rest.get(next..).unwrap_or_default());
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
    }
}
