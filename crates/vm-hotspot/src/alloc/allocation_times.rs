//! Allocation times of tracked objects. Storing a time for each would add a quarter to an object's cost. The
//! objects are kept in allocation order, so a list stores only where a new time begins; the order is kept
//! when objects are freed.

use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use jvmti::Jni;
use locks::{Mutex, Rank};

use crate::alloc::tracked::Entry;
use crate::instrument::natives::with_agent_guard;
use crate::vm::hotspot::HotSpot;

/// Counts milliseconds from 1 on while allocation times are recorded.
pub(crate) struct Clock {
    began: Instant,
    /// The same time in milliseconds since 1970.
    began_ms: u64,
    is_on: AtomicBool,
    /// A thread makes sure that allocation times are recorded soon.
    pub(crate) is_kept: Mutex<bool>,
}

impl Default for Clock {
    fn default() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
        Self {
            began: Instant::now(),
            began_ms: since_1970.map_or(0, |since| since.as_millis() as u64),
            is_on: AtomicBool::new(false),
            is_kept: Mutex::new(Rank::AllocationTimes, false),
        }
    }
}

impl Clock {
    /// The time now; 0 if times are not recorded.
    pub(crate) fn now(&self) -> u32 {
        match self.is_on() {
            true => self.exact(),
            false => 0,
        }
    }

    fn exact(&self) -> u32 {
        let passed = self.began.elapsed().as_millis();
        u32::try_from(passed).unwrap_or(u32::MAX).saturating_add(1)
    }

    /// A time in milliseconds since 1970; 0 if it is not known.
    pub(crate) fn unix_ms(&self, time: u32) -> u64 {
        match time.checked_sub(1) {
            Some(passed) => self.began_ms + u64::from(passed),
            None => 0,
        }
    }

    /// Starts or stops recording times.
    pub(crate) fn switch(&self, on: bool) {
        self.is_on.store(on, Ordering::Relaxed);
    }

    fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }
}

/// Objects from number `first` on were tracked at this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Start {
    first: u32,
    time: u32,
}

/// Tracked objects in the order in which they were made, with times.
#[derive(Default)]
pub(crate) struct Dated {
    entries: Vec<Entry>,
    starts: Vec<Start>,
    /// What a caller that reads the objects piece by piece has not read yet. It stays valid when objects are freed
    /// meanwhile; objects that are added later are not in it.
    unseen: Range<usize>,
}

impl Deref for Dated {
    type Target = [Entry];

    fn deref(&self) -> &[Entry] {
        &self.entries
    }
}

impl DerefMut for Dated {
    fn deref_mut(&mut self) -> &mut [Entry] {
        &mut self.entries
    }
}

/// Begins a new time, if it differs from the last.
fn begin(starts: &mut Vec<Start>, first: usize, time: u32) {
    let last = starts.last().map_or(0, |since| since.time);
    if time != last {
        let first = first as u32;
        starts.push(Start { first, time });
    }
}

impl Dated {
    /// Adds an object that was made at this time of [`Clock`] or a little earlier; 0 if unknown.
    pub(crate) fn push(&mut self, entry: Entry, time: u32) {
        begin(&mut self.starts, self.entries.len(), time);
        self.entries.push(entry);
    }

    /// Appends all objects of another list.
    pub(crate) fn append(&mut self, mut other: Dated) {
        let offset = self.entries.len();
        if other.starts.first().is_none_or(|since| since.first > 0) && !other.is_empty() {
            begin(&mut self.starts, offset, 0);
        }
        for since in &other.starts {
            begin(&mut self.starts, offset + since.first as usize, since.time);
        }
        self.entries.append(&mut other.entries);
        self.thin_out();
    }

    /// Keeps the objects that `keep` accepts.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&Entry) -> bool) {
        let old = std::mem::take(&mut self.starts);
        let mut old = old.into_iter().peekable();
        let (mut index, mut kept, mut time) = (0, 0, 0);
        let starts = &mut self.starts;
        let old_unseen = std::mem::take(&mut self.unseen);
        let unseen = &mut self.unseen;
        self.entries.retain(|entry| {
            while let Some(since) = old.next_if(|since| since.first <= index) {
                time = since.time;
            }
            index += 1;
            let is_kept = keep(entry);
            if is_kept {
                begin(starts, kept, time);
                kept += 1;
                unseen.start += usize::from(index as usize <= old_unseen.start);
                unseen.end += usize::from(index as usize <= old_unseen.end);
            }
            is_kept
        });
        self.thin_out();
    }

    /// Begins to read all objects.
    pub(crate) fn see_all(&mut self) {
        self.unseen = 0..self.entries.len();
    }

    /// The next objects, at most `most`; none when all were read.
    pub(crate) fn next_chunk(&mut self, most: usize) -> &[Entry] {
        let begin = self.unseen.start;
        self.unseen.start = self.unseen.end.min(begin + most);
        &self.entries[begin..self.unseen.start]
    }

    /// Merges times that are close, so that there is at most one time for four objects.
    fn thin_out(&mut self) {
        const FEW: usize = 1024;
        while self.starts.len() > FEW + self.entries.len() / 4 {
            let mut keeps = false;
            self.starts.retain(|_| {
                keeps = !keeps;
                keeps
            });
        }
    }

    /// Gives memory back when much of it is unused: entries take at most twice what they need.
    pub(crate) fn shrink(&mut self) {
        const FEW: usize = 4096;
        if self.entries.capacity() > FEW && self.entries.len() < self.entries.capacity() / 2 {
            self.entries.shrink_to_fit();
        }
        if self.starts.capacity() > FEW && self.starts.len() < self.starts.capacity() / 2 {
            self.starts.shrink_to_fit();
        }
    }

    /// When an object was made; 0 if unknown.
    pub(crate) fn time(&self, index: usize) -> u32 {
        let after = self
            .starts
            .partition_point(|since| since.first as usize <= index);
        let since = after.checked_sub(1).and_then(|at| self.starts.get(at));
        since.map_or(0, |since| since.time)
    }
}

/// Collects the pending objects of all threads so often that allocation times are accurate to about 0.1 s: at a thread
/// that makes few objects they would be pending longer. Costs at most 2 % of a core.
pub(crate) fn keep_allocation_times(hotspot: &HotSpot, jni: Jni) {
    use std::time::Duration;
    const STEP: Duration = Duration::from_millis(25);
    const EVERY: Duration = Duration::from_millis(100);
    let (mut last, mut rest) = (Instant::now(), EVERY);
    while !hotspot.dead.load(Ordering::Relaxed) {
        std::thread::sleep(STEP);
        if last.elapsed() < rest || !hotspot.tracked.clock.is_on() {
            continue;
        }
        last = Instant::now();
        with_agent_guard(|| hotspot.track_all_gathered(jni));
        rest = EVERY.max(50 * last.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alloc::sites::SiteId;
    use jvmti::Object;

    fn entry(number: usize) -> Entry {
        // SAFETY: the reference is never used; it is a number here.
        let weak = unsafe { Object::from_raw(std::ptr::without_provenance_mut(8 * number)) };
        Entry::new(weak.expect("not null"), SiteId(1), 0, 0)
    }

    /// The same list with a time for each object.
    #[test]
    fn times_are_those_of_the_objects_whoever_dies() {
        let mut random = vmpi::Random::new(5);
        let mut random = |below: u64| random.bits() % below;
        let (mut all, mut truth) = (Dated::default(), Vec::new());
        let mut time = 0;
        for _ in 0..200 {
            let mut young = Dated::default();
            for _ in 0..random(60) {
                time += random(2) as u32;
                let now = if random(20) == 0 { 0 } else { time };
                let number = truth.len() + 1;
                young.push(entry(number), now);
                truth.push((number, now));
            }
            all.append(young);
            let mut dies = Vec::new();
            all.retain(|_| {
                dies.push(random(3) == 0);
                !dies[dies.len() - 1]
            });
            let mut dies = dies.iter();
            truth.retain(|_| !dies.next().expect("one for each"));
        }
        assert_eq!(all.len(), truth.len());
        for (index, (_, time)) in truth.iter().enumerate() {
            assert_eq!(all.time(index), *time, "{index}");
        }
    }

    #[test]
    fn who_goes_through_them_sees_each_once_whoever_dies() {
        let mut random = vmpi::Random::new(9);
        let mut random = |below: u64| random.bits() % below;
        let number = |entry: &Entry| entry.weak().raw() as usize / 8;
        for _ in 0..50 {
            let mut all = Dated::default();
            (1..=300).for_each(|number| all.push(entry(number), 0));
            all.see_all();
            let (mut seen, mut dead, mut made) = (Vec::new(), Vec::new(), 300);
            loop {
                let next = all.next_chunk(random(40) as usize + 1);
                if next.is_empty() {
                    break;
                }
                seen.extend(next.iter().map(number));
                all.retain(|entry| {
                    let dies = random(5) == 0;
                    if dies {
                        dead.push(number(entry));
                    }
                    !dies
                });
                made += 1;
                all.push(entry(made), 0);
            }
            let mut expected = seen.clone();
            expected.sort_unstable();
            expected.dedup();
            assert_eq!(seen, expected, "each once, in order");
            let missed = (1..=300).filter(|number| !seen.contains(number));
            assert!(missed.into_iter().all(|number| dead.contains(&number)));
            assert!(seen.iter().all(|number| *number <= 300), "no newcomers");
        }
    }

    #[test]
    fn many_times_are_made_few() {
        let mut all = Dated::default();
        for number in 1..=100_000 {
            all.push(entry(number), number as u32);
        }
        all.retain(|_| true);
        assert!(all.starts.len() <= 1024 + 25_000, "{}", all.starts.len());
        for index in [0, 7, 50_000, 99_999] {
            let error = (index as u32 + 1).abs_diff(all.time(index));
            assert!(error < 8, "{index} {error}");
        }
    }
}
