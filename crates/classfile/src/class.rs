//! The parsed structure of a class file, with what is needed to find the positions to patch.

use crate::error::Error;
use crate::pool::Pool;
use crate::reader::Reader;

const MAGIC: u32 = 0xcafe_babe;

/// `ACC_STATIC` of methods and fields.
pub const STATIC: u16 = 0x0008;
/// `ACC_NATIVE`.
pub const NATIVE: u16 = 0x0100;
/// `ACC_INTERFACE` of classes.
pub const INTERFACE: u16 = 0x0200;
/// `ACC_ABSTRACT`.
pub const ABSTRACT: u16 = 0x0400;

/// A class file, borrowed.
#[derive(Clone, Debug)]
pub struct Class<'a> {
    /// The whole file.
    pub(crate) bytes: &'a [u8],
    /// Version: major, minor.
    pub version: (u16, u16),
    /// The constants.
    pub pool: Pool<'a>,
    /// Access flags.
    pub access: u16,
    /// Its name with slashes.
    pub name: &'a [u8],
    /// Its superclass, none for `java/lang/Object`.
    pub superclass: Option<&'a [u8]>,
    /// Constant pool index of the class itself.
    pub(crate) this: u16,
    /// Offset just after the constant pool.
    pub(crate) after_pool: usize,
    /// All methods, with or without code.
    pub methods: Vec<Method<'a>>,
}

/// A method of a class file.
#[derive(Clone, Debug)]
pub struct Method<'a> {
    /// Position in the class file's list, from 0.
    pub index: usize,
    /// Access flags.
    pub access: u16,
    /// Its name.
    pub name: &'a [u8],
    /// Its descriptor.
    pub descriptor: &'a [u8],
    /// Its code, absent for abstract and native methods.
    pub code: Option<Code<'a>>,
}

/// A Code attribute.
#[derive(Clone, Debug)]
pub struct Code<'a> {
    /// Range of the attribute in the file, name index included.
    pub(crate) range: (usize, usize),
    /// Deepest operand stack.
    pub max_stack: u16,
    /// Slots for locals.
    pub max_locals: u16,
    /// The instructions.
    pub bytes: &'a [u8],
    /// The exception table: start, end, handler, catch type.
    pub handlers: Vec<[u16; 4]>,
    /// Attributes: name and content.
    pub(crate) attributes: Vec<(u16, &'a [u8])>,
}

impl<'a> Class<'a> {
    /// Reads a class file.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Error> {
        let mut reader = Reader::new(bytes);
        let magic = reader.u4()?;
        if magic != MAGIC {
            return Err(Error::Magic(magic));
        }
        let minor = reader.u2()?;
        let version = (reader.u2()?, minor);
        let pool = Pool::read(bytes, &mut reader)?;
        let after_pool = reader.at();
        let access = reader.u2()?;
        let this = reader.u2()?;
        let name = pool.class_name(this)?;
        let superclass = match reader.u2()? {
            0 => None,
            index => Some(pool.class_name(index)?),
        };
        let interfaces = reader.u2()?;
        reader.take(2 * usize::from(interfaces))?;
        for _ in 0..reader.u2()? {
            reader.take(6)?;
            skip_attributes(&mut reader)?;
        }
        let count = reader.u2()?;
        let mut methods = Vec::with_capacity(usize::from(count).min(bytes.len() / 8));
        for index in 0..usize::from(count) {
            methods.push(read_method(&pool, &mut reader, index, version)?);
        }
        skip_attributes(&mut reader)?;
        Ok(Self {
            bytes,
            version,
            pool,
            access,
            name,
            this,
            superclass,
            after_pool,
            methods,
        })
    }

    /// The name as text; names that are not valid UTF-8 get replacement characters.
    #[must_use]
    pub fn name_text(&self) -> String {
        String::from_utf8_lossy(self.name).into_owned()
    }
}

fn skip_attributes(reader: &mut Reader<'_>) -> Result<(), Error> {
    for _ in 0..reader.u2()? {
        reader.u2()?;
        let len = reader.u4()?;
        reader.take(len as usize)?;
    }
    Ok(())
}

fn read_method<'a>(
    pool: &Pool<'a>,
    reader: &mut Reader<'a>,
    index: usize,
    version: (u16, u16),
) -> Result<Method<'a>, Error> {
    let access = reader.u2()?;
    let (name, descriptor) = (reader.u2()?, reader.u2()?);
    let (name, descriptor) = (pool.utf8(name)?, pool.utf8(descriptor)?);
    let mut code = None;
    for _ in 0..reader.u2()? {
        let start = reader.at();
        let attribute = reader.u2()?;
        let len = reader.u4()?;
        let content = reader.take(len as usize)?;
        if pool.utf8(attribute)? == b"Code" && code.is_none() {
            code = Some(read_code(content, version, (start, reader.at()))?);
        }
    }
    Ok(Method {
        index,
        access,
        name,
        descriptor,
        code,
    })
}

/// Versions before 45.3 have narrower counts in the Code attribute.
pub(crate) fn is_oldest(version: (u16, u16)) -> bool {
    version.0 == 45 && version.1 < 3
}

fn read_code(
    content: &[u8],
    version: (u16, u16),
    range: (usize, usize),
) -> Result<Code<'_>, Error> {
    let mut reader = Reader::new(content);
    let (max_stack, max_locals, len) = if is_oldest(version) {
        (
            u16::from(reader.u1()?),
            u16::from(reader.u1()?),
            u32::from(reader.u2()?),
        )
    } else {
        (reader.u2()?, reader.u2()?, reader.u4()?)
    };
    let bytes = reader.take(len as usize)?;
    let mut handlers = Vec::new();
    for _ in 0..reader.u2()? {
        handlers.push([reader.u2()?, reader.u2()?, reader.u2()?, reader.u2()?]);
    }
    let mut attributes = Vec::new();
    for _ in 0..reader.u2()? {
        let name = reader.u2()?;
        let len = reader.u4()?;
        attributes.push((name, reader.take(len as usize)?));
    }
    Ok(Code {
        range,
        max_stack,
        max_locals,
        bytes,
        handlers,
        attributes,
    })
}
