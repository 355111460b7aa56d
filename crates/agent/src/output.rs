//! Where the bytes go: a file, or a peer that listens.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agent_core::WallTime;
use agent_core::options::{
    Format, Mode, Options, Patterns, StartError, Target, expand, temporary_name, unique_name,
};

use crate::process::wall_time;
use crate::sender::{Patience, Sender};

/// An opened output.
pub(crate) struct Output {
    /// Takes the bytes.
    pub(crate) writer: Box<dyn Write + Send>,
    /// Where commands come from, in socket mode, and how long the peer is waited for.
    pub(crate) peer: Option<(TcpStream, Patience)>,
    /// A name for a dump of the VM's own, beside the output or among temporary files.
    pub(crate) scratch: PathBuf,
}

/// The name of the VM's own dump; the VM wants it to end so.
fn scratch(name: &str) -> PathBuf {
    let pid = std::process::id();
    PathBuf::from(format!("{}.{pid}.hprof", temporary_name(name)))
}

/// Opens what the options name.
pub(crate) fn open(options: &Options) -> Result<Output, StartError> {
    match &options.output.target {
        Target::Net { host, port } => connect(host, *port),
        Target::File(name) => create(options, name),
    }
}

fn create(options: &Options, name: &str) -> Result<Output, StartError> {
    let mut name = name.to_owned();
    if options.mode == Mode::Modern {
        let time = stamp(wall_time());
        let host = hostname();
        let patterns = Patterns {
            pid: std::process::id(),
            time: &time,
            host: &host,
        };
        name = expand(&name, &patterns, |variable| std::env::var(variable).ok());
    }
    if !options.output.force && Path::new(&name).exists() {
        name = unique_name(&name, options.output.format, std::process::id());
    }
    let file = new_file(Path::new(&name)).map_err(|_| match options.heap.dump {
        // The original made its temporary file first; scripts compare its words.
        true => StartError::TempHeapFile(format!("{name}.TMP")),
        false => StartError::ProfileFile(name.clone()),
    })?;
    // Text is small and read while the program runs, a dump is large.
    let buffer = if options.output.format == Format::Binary {
        1 << 20
    } else {
        64 << 10
    };
    Ok(Output {
        writer: Box::new(BufWriter::with_capacity(buffer, file)),
        peer: None,
        scratch: scratch(&name),
    })
}

/// A new file in place of an old one, readable by its owner only: a dump holds
/// what the program holds.
fn new_file(path: &Path) -> io::Result<File> {
    if path.is_file() {
        fs::remove_file(path)?;
    }
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
}

/// Writes to the peer by a thread of its own: a buffer of ours only, given up at each flush.
fn connect(host: &str, port: i64) -> Result<Output, StartError> {
    let refused = || StartError::Connect {
        host: host.to_owned(),
        port,
    };
    if port == 0 {
        return Err(StartError::ProfileFile("(null)".to_owned()));
    }
    // The original passed the low 16 bits on.
    let addresses = (host, port as u16)
        .to_socket_addrs()
        .map_err(|_| refused())?;
    let stream = addresses
        .filter_map(|address| TcpStream::connect_timeout(&address, Duration::from_secs(10)).ok())
        .next()
        .ok_or_else(refused)?;
    let _ = stream.set_nodelay(true);
    let peer = stream.try_clone().map_err(|_| refused())?;
    let sender = Sender::new(stream).map_err(|_| refused())?;
    let patience = sender.patience();
    Ok(Output {
        writer: Box::new(BufWriter::with_capacity(64 << 10, sender)),
        peer: Some((peer, patience)),
        scratch: scratch(&std::env::temp_dir().join("hprof").to_string_lossy()),
    })
}

/// `20260131-235959`, for file names.
fn stamp(now: WallTime) -> String {
    let text = now.ctime();
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, month, day, time, year] = words[..] else {
        return String::new();
    };
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let month = MONTHS.find(month).unwrap_or(0) / 3 + 1;
    format!("{year}{month:02}{day:0>2}-{}", time.replace(':', ""))
}

fn hostname() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_sorts_by_time() {
        let time = WallTime {
            unix_ms: 1_795_237_044_000,
            offset_seconds: 0,
        };
        assert_eq!(stamp(time), "20261121-045724");
    }

    #[test]
    fn a_new_file_is_its_owners_alone() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out");
        fs::write(&path, "old").unwrap();
        new_file(&path).unwrap();
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!(
            (metadata.len(), metadata.permissions().mode() & 0o777),
            (0, 0o600)
        );
    }
}
