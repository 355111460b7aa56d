//! The sections of an opened heap's index. One whose checksum is wrong is read from an index that
//! is built again, so a damaged index costs time and never changes an answer.

use crate::index::{Identity, IndexFile, IndexPlace, Tag, in_spill_folder};
use crate::raw::{Plain, view};
use crate::{Control, HeapError, Options, build};
use hprof::source::{Changed, Source, Unpack};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// An index file, and the one that replaced it when a section was found to be damaged.
pub(crate) struct Sections {
    file: IndexFile,
    again: OnceLock<Option<IndexFile>>,
    identity: Option<Identity>,
    path: PathBuf,
    options: Options,
}

impl Sections {
    /// The sections of the index of a dump.
    pub(crate) fn new(
        file: IndexFile,
        identity: Option<Identity>,
        path: &Path,
        options: &Options,
    ) -> Sections {
        Sections {
            file,
            again: OnceLock::new(),
            identity,
            path: path.to_owned(),
            options: options.clone(),
        }
    }

    /// The bytes of a section; empty if there is none, or if it is damaged and cannot be made
    /// again.
    pub(crate) fn bytes(&self, tag: Tag) -> &[u8] {
        match self.file.verified(tag) {
            Some(bytes) => bytes,
            None => self.again().map_or(&[], |file| file.bytes(tag)),
        }
    }

    /// A value of a section that is a column; 0 if there is none.
    #[inline]
    pub(crate) fn value(&self, tag: Tag, at: u64) -> u64 {
        match self.file.value(tag, at) {
            Some(value) => value,
            None => self
                .again()
                .map_or(0, |file| file.value(tag, at).unwrap_or(0)),
        }
    }

    /// A section as an array, as [`bytes`](Self::bytes).
    pub(crate) fn array<T: Plain>(&self, tag: Tag) -> &[T] {
        view(self.bytes(tag)).unwrap_or_default()
    }

    /// Whether what was read so far can be trusted.
    pub(crate) fn check(&self) -> Result<(), Changed> {
        self.file.health().check()
    }

    #[cold]
    fn again(&self) -> Option<&IndexFile> {
        let build = || {
            let control = Control::quiet();
            let (file, _) = build(&self.path, self.identity, &self.options, &control).ok()?;
            // The same dump gives the same index. If this one differs, the dump is another by now,
            // and sections of both must not be mixed.
            let same = file.bytes(Tag::Meta) == self.file.bytes(Tag::Meta);
            same.then_some(file)
        };
        let again = self.again.get_or_init(build).as_ref();
        if again.is_none() {
            self.file.health().fail();
        }
        again
    }
}

/// What distinguishes the dump and the options of an index from others; `None` for what is no regular file.
pub(crate) fn identity(path: &Path, options: &Options) -> Option<Identity> {
    Identity::of_file(path, u64::from(options.tuning.wide)).ok()
}

/// How a packed dump is unpacked.
pub(crate) fn unpack<'a>(dir: &'a Path, options: &Options, control: &Control<'a>) -> Unpack<'a> {
    Unpack {
        dir: Some(dir),
        threads: options.threads,
        dump: options.snapshot,
        control: *control,
    }
}

/// Opens a dump that had this identity before.
///
/// # Errors
/// [`HeapError::Changed`] if the file has another identity by now.
pub(crate) fn open(
    path: &Path,
    expected: Option<Identity>,
    options: &Options,
    control: &Control<'_>,
) -> Result<Source, HeapError> {
    let source = in_spill_folder(path, options, |folder| {
        Ok(Source::open(path, &unpack(folder, options, control))?)
    })?;
    // After the opening: a file that took the name before it has another identity.
    if expected.is_some() && identity(path, options) != expected {
        return Err(HeapError::Changed {
            path: path.display().to_string(),
            why: Changed::Written,
        });
    }
    Ok(source)
}

/// Reads a dump and writes its index, where there is a place for one. The identity was taken before the first byte is
/// read: what changes from then on makes the index void.
pub(crate) fn build(
    path: &Path,
    identity: Option<Identity>,
    options: &Options,
    control: &Control<'_>,
) -> Result<(IndexFile, Source), HeapError> {
    options.phases.begin("records");
    let source = open(path, identity, options, control)?;
    source.advise(true);
    let mapped = build::mapped::map(&source, false)?;
    let place = identity.map(|identity| (IndexPlace::of(path, options), identity));
    let file = in_spill_folder(path, options, |folder| {
        build::build(&mapped, path, place.as_ref(), folder, options, control)
    })?;
    drop(mapped);
    source.advise(false);
    Ok((file, source))
}
