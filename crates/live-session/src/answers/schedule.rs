//! Saved tables of all classes: on request, and periodically.

use super::tables;
use crate::recording::state::{Live, locked};
use crate::recording::status::RecordingState;
use profile::write;
use report::profile::Form;
use requests::Params;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long this waits for the last counts of a program that has ended.
const LAST_WORDS: Duration = Duration::from_secs(3);

impl Live {
    /// Saves the recording of a program that has ended, for the time when there is no page any more: the table of all
    /// classes, and the allocations by stack as JFR. Returns the files, or none if nothing was counted.
    ///
    /// # Errors
    /// A message: a file cannot be written.
    pub fn keep_recording(&self) -> Result<Vec<PathBuf>, String> {
        self.await_last_counts();
        let is_counting = |recording: &RecordingState| recording.counting;
        if !self
            .status
            .borrow()
            .recording
            .as_ref()
            .is_some_and(is_counting)
        {
            return Ok(Vec::new());
        }
        let jfr = tables::profile(self, &Params::default(), Form::Plain(write::Form::Jfr))
            .map_err(|it| it.message)?;
        let jfr = self.saved_tables.keep_file("recording", "jfr", &jfr);
        let jfr = jfr.map_err(|error| error.to_string())?;
        let number = self.save()?;
        let table = self
            .saved_tables
            .get(number)
            .map(|saved| saved.file("html"));
        Ok(std::iter::once(jfr).chain(table).collect())
    }

    /// Waits for data that the agent of an ended program has already sent.
    pub fn await_last_counts(&self) {
        let begun = Instant::now();
        while self.is_connected() && begun.elapsed() < LAST_WORDS {
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Whether an agent is connected, or data that it has sent is still being read.
    pub(crate) fn is_connected(&self) -> bool {
        let status = self.status.borrow();
        let recording = status.recording.as_ref();
        recording.is_some_and(|recording| recording.connected)
    }

    /// Saves the table of all classes, and returns its number.
    ///
    /// # Errors
    /// A message: there is no source of counts, or a file cannot be written.
    pub fn save(&self) -> Result<usize, String> {
        let mut classes =
            tables::class_rows(self, &Params::default()).map_err(|fault| fault.message)?;
        classes.rows.sort_by(|a, b| {
            let bytes = b.live_bytes.cmp(&a.live_bytes);
            bytes.then_with(|| a.class.cmp(&b.class))
        });
        let sized = classes.sizes.map(|sizes| sizes.time_ms);
        let number = self
            .saved_tables
            .keep(classes.source, sized, classes.rows)
            .map_err(|error| error.to_string())?;
        if let Some(saved) = self.saved_tables.get(number) {
            locked(&self.past).saved(saved);
        }
        let saved = self.saved_tables.list();
        self.status.send_modify(|status| status.saved = saved);
        Ok(number)
    }

    /// Saves a table after each such number of minutes from now on; 0 ends this.
    ///
    /// # Errors
    /// The time is more than a week.
    pub fn save_every(&self, minutes: u64) -> Result<(), String> {
        if minutes > 7 * 24 * 60 {
            return Err(format!("{minutes} minutes: expected 0 to 10080"));
        }
        self.status
            .send_modify(|status| status.save_every_minutes = minutes);
        Ok(())
    }

    pub(crate) fn save_on_schedule(self: &Arc<Self>) {
        let mut last = Instant::now();
        let mut known = 0;
        while self.alive() {
            std::thread::sleep(Duration::from_millis(200));
            let minutes = self.status.borrow().save_every_minutes;
            if minutes != known {
                (known, last) = (minutes, Instant::now());
            }
            if minutes > 0 && last.elapsed() >= Duration::from_secs(60 * minutes) {
                last = Instant::now();
                if let Err(error) = self.save() {
                    self.fail(&error);
                }
            }
        }
    }
}
