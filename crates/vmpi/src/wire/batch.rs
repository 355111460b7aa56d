//! A batch: events of one thread as columns.
//!
//! Payload: thread; number of items; runs of (code, length), which preserve the order of the items; then for each code,
//! in the order of its first run, its number columns and its byte column. A number column has its first value, the
//! length of the rest in bytes, and the differences between consecutive values; a length of 0 means that all are equal.
//! The first column of a code never uses this form, so a batch has no more items than bytes.

use super::damage::Damage;
use super::item::Item;
use super::row::{self, CODES, MAX_NUMBERS, Row};
use super::varint::{Input, fold, put, unfold};
use crate::vm_event::EnvId;

/// A number column being written.
#[derive(Debug, Default)]
struct Numbers {
    first: u64,
    last: u64,
    varies: bool,
    bytes: Vec<u8>,
}

/// The columns of one code being written.
#[derive(Debug)]
struct Columns {
    code: u8,
    rows: usize,
    numbers: Vec<Numbers>,
    bytes: Option<Vec<u8>>,
}

impl Columns {
    fn new(code: u8) -> Self {
        let (numbers, bytes) = row::shape(code).unwrap_or((1, false));
        Self {
            code,
            rows: 0,
            numbers: (0..numbers).map(|_| Numbers::default()).collect(),
            bytes: bytes.then(Vec::new),
        }
    }

    fn push(&mut self, row: &Row) {
        for (column, &value) in self.numbers.iter_mut().zip(&row.numbers) {
            if self.rows == 0 {
                column.first = value;
            } else {
                column.varies |= value != column.last;
                put(
                    &mut column.bytes,
                    fold(value.wrapping_sub(column.last) as i64),
                );
            }
            column.last = value;
        }
        if let Some(bytes) = &mut self.bytes {
            super::varint::put_bytes(bytes, &row.bytes);
        }
        self.rows += 1;
    }

    fn finish(&self, out: &mut Vec<u8>) {
        for (at, column) in self.numbers.iter().enumerate() {
            put(out, column.first);
            if at == 0 || column.varies {
                super::varint::put_bytes(out, &column.bytes);
            } else {
                out.push(0);
            }
        }
        if let Some(bytes) = &self.bytes {
            super::varint::put_bytes(out, bytes);
        }
    }
}

/// Collects items of one thread.
#[derive(Debug)]
pub(crate) struct BatchWriter {
    env: EnvId,
    items: u64,
    size: usize,
    runs: Vec<(u8, u64)>,
    columns: Vec<Columns>,
    slot: [u8; CODES],
    row: Row,
    pub(crate) ordered: bool,
    /// Whether some items can be dropped when the buffer is full.
    pub(crate) may_be_thinned: bool,
}

/// An upper bound on the bytes of a batch without its items.
const HEAD: usize = 64;

const NO_SLOT: u8 = u8::MAX;

impl BatchWriter {
    pub(crate) fn new(env: EnvId) -> Self {
        Self {
            env,
            items: 0,
            size: 0,
            runs: Vec::new(),
            columns: Vec::new(),
            slot: [NO_SLOT; CODES],
            row: Row::default(),
            ordered: false,
            may_be_thinned: false,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.items == 0
    }

    /// An upper bound on the bytes so far.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    pub(crate) fn env(&self) -> EnvId {
        self.env
    }

    pub(crate) fn push(&mut self, item: &Item) {
        let code = self.row.spread(item);
        let plain = usize::from(code & 0x7f);
        if self.slot[plain] == NO_SLOT {
            self.slot[plain] = self.columns.len() as u8;
            self.columns.push(Columns::new(plain as u8));
        }
        let columns = &mut self.columns[usize::from(self.slot[plain])];
        columns.push(&self.row);
        match self.runs.last_mut() {
            Some((last, len)) if *last == code => *len += 1,
            _ => self.runs.push((code, 1)),
        }
        self.items += 1;
        self.size += 12 + self.row.bytes.len() + 2 * columns.numbers.len();
        self.ordered |= item.is_ordered();
        self.may_be_thinned |= item.may_be_dropped();
        self.row.shrink();
    }

    /// The payload; the writer is empty afterwards.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        let mut out = Vec::with_capacity(HEAD + self.size);
        put(&mut out, self.env.0);
        put(&mut out, self.items);
        put(&mut out, self.runs.len() as u64);
        for (code, len) in &self.runs {
            out.push(*code);
            put(&mut out, *len);
        }
        for columns in &self.columns {
            columns.finish(&mut out);
        }
        for columns in &self.columns {
            self.slot[usize::from(columns.code)] = NO_SLOT;
        }
        self.columns.clear();
        self.runs.clear();
        self.items = 0;
        self.size = 0;
        self.ordered = false;
        self.may_be_thinned = false;
        out
    }
}

/// A number column being read.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor<'a> {
    value: u64,
    started: bool,
    constant: bool,
    input: Input<'a>,
}

impl Cursor<'_> {
    #[inline]
    fn next(&mut self) -> Option<u64> {
        if !self.started {
            self.started = true;
        } else if !self.constant {
            let difference = unfold(self.input.number()?);
            self.value = self.value.wrapping_add(difference as u64);
        }
        Some(self.value)
    }
}

/// The columns of one code being read.
#[derive(Clone, Debug)]
struct Reading<'a> {
    width: usize,
    numbers: [Cursor<'a>; MAX_NUMBERS],
    bytes: Input<'a>,
    has_bytes: bool,
}

/// The items of one batch, in order. It ends after an error.
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    env: EnvId,
    items: u64,
    offset: u64,
    runs: Input<'a>,
    run: (u8, u64),
    slot: [u8; CODES],
    columns: Vec<Reading<'a>>,
    left: u64,
}

impl<'a> Batch<'a> {
    /// The thread whose events these are; 0 for the VM itself.
    #[must_use]
    pub fn env(&self) -> EnvId {
        self.env
    }

    /// The number of items that it claims to have; a damaged batch may have fewer.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.items
    }

    /// Whether it has no items.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.items == 0
    }

    pub(crate) fn decode(payload: &'a [u8], offset: u64) -> Result<Self, Damage> {
        let mut input = Input::new(payload);
        let bad = |input: &Input<'_>, expected: &str, found: String| {
            Damage::new(offset + input.position() as u64, "batch", expected, found)
        };
        let gone = || "no such bytes".to_string();
        let head = (|| Some((input.number()?, input.number()?, input.number()?)))();
        let (env, items, run_count) =
            head.ok_or_else(|| Damage::new(offset, "batch", "thread, items, runs", gone()))?;
        if items > payload.len() as u64 || run_count > items {
            let found = format!(
                "{items} items in {run_count} runs in {} bytes",
                payload.len()
            );
            return Err(bad(
                &input,
                "no more runs than items and no more items than bytes",
                found,
            ));
        }
        let runs_start = input.position();
        let mut slot = [NO_SLOT; CODES];
        let mut codes: Vec<(u8, u64)> = Vec::new();
        let mut total = 0u64;
        for _ in 0..run_count {
            let code = input.byte().ok_or_else(|| bad(&input, "a code", gone()))?;
            let len = input.number().ok_or_else(|| bad(&input, "a run", gone()))?;
            let plain = usize::from(code & 0x7f);
            if row::shape(plain as u8).is_none() || len == 0 {
                return Err(bad(
                    &input,
                    "a known code and a length",
                    format!("{code} {len}"),
                ));
            }
            total = total.saturating_add(len);
            if slot[plain] == NO_SLOT {
                slot[plain] = codes.len() as u8;
                codes.push((plain as u8, 0));
            }
            let rows = &mut codes[usize::from(slot[plain])].1;
            *rows = rows.saturating_add(len);
        }
        if total != items {
            return Err(bad(
                &input,
                &format!("runs of {items} items"),
                total.to_string(),
            ));
        }
        let runs = Input::new(&payload[runs_start..input.position()]);
        let mut columns = Vec::with_capacity(codes.len());
        for (code, rows) in codes {
            columns.push(Reading::decode(code, rows, &mut input).ok_or_else(|| {
                bad(
                    &input,
                    &format!("columns of code {code} with {rows} rows"),
                    gone(),
                )
            })?);
        }
        if input.left() > 0 {
            return Err(bad(
                &input,
                "the end of the batch",
                format!("{} bytes more", input.left()),
            ));
        }
        Ok(Self {
            env: EnvId(env),
            items,
            offset,
            runs,
            run: (0, 0),
            slot,
            columns,
            left: items,
        })
    }

    #[cold]
    fn bad_row(&mut self, code: u8) -> Damage {
        let index = self.items - self.left;
        self.left = 0;
        let found = format!("item {index}, code {}", code & 0x7f);
        Damage::new(
            self.offset,
            "batch row",
            "numbers and bytes in range",
            found,
        )
    }
}

impl<'a> Reading<'a> {
    fn decode(code: u8, rows: u64, input: &mut Input<'a>) -> Option<Self> {
        let (width, has_bytes) = row::shape(code)?;
        let mut numbers = [Cursor::default(); MAX_NUMBERS];
        for (at, cursor) in numbers.iter_mut().enumerate().take(width) {
            cursor.value = input.number()?;
            let bytes = input.counted()?;
            cursor.constant = bytes.is_empty() && (at > 0 || rows == 1);
            if !cursor.constant && (bytes.len() as u64) < rows - 1 {
                return None;
            }
            cursor.input = Input::new(bytes);
        }
        let bytes = if has_bytes { input.counted()? } else { &[] };
        Some(Self {
            width,
            numbers,
            bytes: Input::new(bytes),
            has_bytes,
        })
    }

    #[inline]
    fn row(&mut self, code: u8) -> Option<Item> {
        let mut numbers = [0; MAX_NUMBERS];
        for (number, cursor) in numbers.iter_mut().zip(&mut self.numbers[..self.width]) {
            *number = cursor.next()?;
        }
        let bytes = if self.has_bytes {
            self.bytes.counted()?
        } else {
            &[]
        };
        row::gather(code, &numbers, bytes)
    }
}

impl Iterator for Batch<'_> {
    type Item = Result<Item, Damage>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        if self.run.1 == 0 {
            let next = (|| Some((self.runs.byte()?, self.runs.number()?)))();
            let Some(run) = next else {
                return Some(Err(self.bad_row(0)));
            };
            self.run = run;
        }
        let code = self.run.0;
        let slot = usize::from(self.slot[usize::from(code & 0x7f)]);
        let Some(item) = self.columns[slot].row(code) else {
            return Some(Err(self.bad_row(code)));
        };
        self.run.1 -= 1;
        self.left -= 1;
        Some(Ok(item))
    }
}
