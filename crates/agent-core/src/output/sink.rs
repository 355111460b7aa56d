//! The output behind both forms. Writing never fails; the first failure is stored.

use std::io::{self, Write};

/// A writer that discards everything after its first failure, so that a full disk or a lost collector
/// ends the output and not the program.
pub(crate) struct Sink {
    out: Box<dyn Write + Send>,
    failed: bool,
    failure: Option<String>,
}

impl Sink {
    pub(crate) fn new(out: Box<dyn Write + Send>) -> Sink {
        Sink {
            out,
            failed: false,
            failure: None,
        }
    }

    /// The first failure, once.
    pub(crate) fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    fn check(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.failed = true;
            self.failure = Some(error.to_string());
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if !self.failed {
            let result = self.out.write_all(bytes);
            self.check(result);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if !self.failed {
            let result = self.out.flush();
            self.check(result);
        }
        Ok(())
    }
}
