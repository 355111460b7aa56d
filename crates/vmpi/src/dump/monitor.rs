//! Records of the monitor dump (section 4.4).

use super::{Cursor, IdLayout};
use crate::c_interface::raw_monitor::Usage;
use crate::ids::ObjectHandle;
use crate::vm_event::{EnvId, RawMonitorId};
use crate::wire::Damage;

const JAVA: u8 = 1;
const RAW: u8 = 2;

/// The monitor of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MonitorName {
    /// The monitor of an object.
    Java(ObjectHandle),
    /// A raw monitor. The buffer has a pointer to its name, which is valid only in the dumped process.
    Raw {
        /// The address of the name.
        name: u64,
        /// The monitor.
        monitor: RawMonitorId,
    },
}

/// One monitor with its owner and waiting threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MonitorRecord {
    /// The monitor.
    pub monitor: MonitorName,
    /// The owner; 0 for none.
    pub owner: EnvId,
    /// How often the owner entered it.
    pub entry_count: u32,
    /// Threads that wait to enter.
    pub waiting_to_enter: Vec<EnvId>,
    /// Threads that wait to be notified.
    pub waiting_to_be_notified: Vec<EnvId>,
}

impl MonitorRecord {
    /// The record of a raw monitor.
    #[must_use]
    pub fn of(usage: &Usage) -> Self {
        let envs = |list: &[usize]| list.iter().map(|env| EnvId(*env as u64)).collect();
        Self {
            monitor: MonitorName::Raw {
                name: usage.name as u64,
                monitor: RawMonitorId(usage.id as u64),
            },
            owner: EnvId(usage.owner as u64),
            entry_count: usage.count,
            waiting_to_enter: envs(&usage.entering),
            waiting_to_be_notified: envs(&usage.waiting),
        }
    }
}

/// Appends one record.
pub fn encode(out: &mut Vec<u8>, record: &MonitorRecord, layout: IdLayout) {
    match record.monitor {
        MonitorName::Java(object) => {
            out.push(JAVA);
            layout.put(out, object.0);
        }
        MonitorName::Raw { name, monitor } => {
            out.push(RAW);
            layout.put(out, name);
            layout.put(out, monitor.0);
        }
    }
    layout.put(out, record.owner.0);
    out.extend_from_slice(&record.entry_count.to_be_bytes());
    for threads in [&record.waiting_to_enter, &record.waiting_to_be_notified] {
        out.extend_from_slice(&(threads.len() as u32).to_be_bytes());
        for thread in threads {
            layout.put(out, thread.0);
        }
    }
}

/// The records of a monitor dump; if it is damaged, those before the damage.
#[must_use]
pub fn decode(bytes: &[u8], layout: IdLayout) -> (Vec<MonitorRecord>, Option<Damage>) {
    let mut cursor = Cursor::new(bytes, layout);
    let mut records = Vec::new();
    while !cursor.is_done() {
        match one(&mut cursor) {
            Ok(record) => records.push(record),
            Err(damage) => return (records, Some(damage)),
        }
    }
    (records, None)
}

fn one(cursor: &mut Cursor<'_>) -> Result<MonitorRecord, Damage> {
    let start = *cursor;
    let monitor = match cursor.u1("a record type")? {
        JAVA => MonitorName::Java(cursor.object("an object")?),
        RAW => MonitorName::Raw {
            name: cursor.id("a name")?,
            monitor: RawMonitorId(cursor.id("a raw monitor")?),
        },
        other => return Err(start.damage("a record type, 1 or 2", other)),
    };
    let owner = EnvId(cursor.id("an owner")?);
    let entry_count = cursor.u4("an entry count")?;
    let mut threads = || -> Result<Vec<EnvId>, Damage> {
        let count = cursor.u4("a thread count")?;
        let ids = cursor.ids(count, "threads")?;
        Ok(ids.into_iter().map(EnvId).collect())
    };
    Ok(MonitorRecord {
        monitor,
        owner,
        entry_count,
        waiting_to_enter: threads()?,
        waiting_to_be_notified: threads()?,
    })
}
