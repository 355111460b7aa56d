//! Lines with their offsets, and a small scanner for one line.

/// Walks a buffer line by line. Lines do not include their end, whether LF or CR LF.
#[derive(Clone, Debug)]
pub(super) struct Lines<'a> {
    text: &'a [u8],
    at: usize,
}

/// One line and its offset.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub(super) offset: usize,
    pub(super) text: &'a [u8],
    /// False for a last line without a line end: the file may have been cut inside it.
    pub(super) ended: bool,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a [u8]) -> Lines<'a> {
        Lines { text, at: 0 }
    }

    pub(super) fn offset(&self) -> usize {
        self.at
    }

    /// The bytes between two offsets.
    pub(super) fn slice(&self, from: usize, to: usize) -> &'a [u8] {
        self.text.get(from..to).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<Line<'a>> {
        self.clone().next()
    }

    /// The next line if it begins with `prefix`; otherwise nothing is consumed.
    pub(super) fn next_if(&mut self, prefix: &[u8]) -> Option<Line<'a>> {
        let line = self.peek().filter(|line| line.text.starts_with(prefix))?;
        self.next();
        Some(line)
    }
}

impl<'a> Iterator for Lines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let offset = self.at;
        let end = rest.iter().position(|byte| *byte == b'\n');
        self.at += end.map_or(rest.len(), |end| end + 1);
        let text = &rest[..end.unwrap_or(rest.len())];
        Some(Line {
            offset,
            text: text.strip_suffix(b"\r").unwrap_or(text),
            ended: end.is_some(),
        })
    }
}

/// Parses a line from the left. Every step is an `Option`, so a reader is a chain of `?`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scan<'a>(pub(super) &'a [u8]);

impl<'a> Scan<'a> {
    /// Consumes this text, which must be there.
    pub(super) fn word(&mut self, word: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(word.as_bytes())?;
        Some(())
    }

    /// Consumes this text if it is there; returns whether it was.
    pub(super) fn accept(&mut self, word: &str) -> bool {
        self.word(word).is_some()
    }

    /// Everything before `stop`, which is consumed too.
    pub(super) fn until(&mut self, stop: &str) -> Option<&'a [u8]> {
        let at = find(self.0, stop.as_bytes())?;
        let found = &self.0[..at];
        self.0 = &self.0[at + stop.len()..];
        Some(found)
    }

    /// All that is left.
    pub(super) fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.0)
    }

    /// True at the end of the line.
    pub(super) fn done(&self) -> bool {
        self.0.is_empty()
    }

    /// Skips blanks.
    pub(super) fn blanks(&mut self) -> &mut Self {
        let blanks = self.0.iter().take_while(|byte| **byte == b' ').count();
        self.0 = &self.0[blanks..];
        self
    }

    /// Skips tabs.
    pub(super) fn tabs(&mut self) -> &mut Self {
        let tabs = self.0.iter().take_while(|byte| **byte == b'\t').count();
        self.0 = &self.0[tabs..];
        self
    }

    fn ascii(&mut self, accept: impl Fn(u8) -> bool) -> Option<&'a str> {
        let end = self
            .0
            .iter()
            .position(|byte| !accept(*byte))
            .unwrap_or(self.0.len());
        let found = std::str::from_utf8(&self.0[..end])
            .ok()
            .filter(|text| !text.is_empty())?;
        self.0 = &self.0[end..];
        Some(found)
    }

    /// A decimal number, signed.
    pub(super) fn signed(&mut self) -> Option<i64> {
        self.ascii(|byte| byte.is_ascii_digit() || byte == b'-')?
            .parse()
            .ok()
    }

    /// A decimal number.
    pub(super) fn number(&mut self) -> Option<u64> {
        self.ascii(|byte| byte.is_ascii_digit())?.parse().ok()
    }

    /// A decimal number of 32 bits.
    pub(super) fn serial(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    /// A hexadecimal number.
    pub(super) fn hex(&mut self) -> Option<u64> {
        u64::from_str_radix(self.ascii(|byte| byte.is_ascii_hexdigit())?, 16).ok()
    }

    /// A percentage with its sign.
    pub(super) fn percent(&mut self) -> Option<f64> {
        let text = self.ascii(|byte| !matches!(byte, b'%' | b' '))?;
        self.word("%")?;
        // Some C libraries print a decimal comma if the program has set a locale.
        text.replace(',', ".").parse().ok()
    }
}

/// The first place of `needle`.
pub(super) fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .position(|window| window == needle)
}

/// The last place of `needle`.
pub(super) fn rfind(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack
        .windows(needle.len())
        .rposition(|window| window == needle)
}
