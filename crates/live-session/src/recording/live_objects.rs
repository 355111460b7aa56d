//! The live instances of a class, as the agent lists them now: no heap dump, no pause. It lists the tracked ones, when
//! and where each was allocated, and, if code of the program may be run, results of their methods.

use super::asking::{KEPT, Kept, MOST_KEPT};
use super::program::Ask;
use super::state::{Live, locked};
use live_analysis::instances::{Found, Group, Instance, Query, Uniq};
use live_analysis::listed::{self, Excluded};
use requests::Fault;
use std::time::{Duration, Instant};
use vmpi::instances::{EQUAL, HASH, MOST, ORDER, TEXT};
use vmpi::{InstanceQuery, Listing};

/// This is longer than the agent calls methods of objects for one request.
const PATIENCE: Duration = Duration::from_secs(40);
/// The most characters of a text that describes a group.
const GROUP_TEXT: u32 = 2000;

/// The requested page of an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Page {
    /// The answer has no pages.
    None,
    First,
    Later,
}

/// A request to the agent.
fn question(class: &str, query: &Query, ask: u8, text_limit: usize) -> InstanceQuery {
    InstanceQuery {
        number: 0,
        sample: query
            .sample
            .map_or(MOST, |most| (most as u64).min(u64::from(MOST)) as u32),
        ask,
        text_limit: u32::try_from(text_limit).unwrap_or(u32::MAX),
        class: class.to_owned(),
    }
}

impl Live {
    /// Requests the instances of a class from the agent, one request at a time.
    ///
    /// # Errors
    /// No agent is connected, or it does not answer.
    fn listing(&self, mut query: InstanceQuery, page: Page) -> Result<Listing, Fault> {
        let none = || Fault::not_found("nothing is being recorded; start a recording first");
        let mut asking = locked(&self.asking);
        asking.kept.retain(|kept| kept.arrived.elapsed() < KEPT);
        let mut kept = asking.kept.iter().filter(|_| page == Page::Later);
        if let Some(kept) = kept.find(|kept| kept.is_of(&query)) {
            return Ok(kept.listing.clone());
        }
        let commands = self.commands().ok_or_else(none)?;
        asking.number = asking.number.wrapping_add(1);
        query.number = asking.number;
        commands(Ask::Instances(query.clone())).map_err(Fault::failed)?;
        let begun = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            let arrived = self.recorded_mut(|recorded| {
                let is_it = |listing: &mut Listing| listing.number == query.number;
                recorded.listing.take_if(is_it)
            });
            if let Some(listing) = arrived {
                self.status.send_if_modified(|status| {
                    let is_news = status.own_code != listing.own_code;
                    status.own_code = listing.own_code;
                    is_news
                });
                if page != Page::None {
                    asking.kept.retain(|kept| !kept.is_of(&query));
                    if asking.kept.len() == MOST_KEPT {
                        asking.kept.remove(0);
                    }
                    asking.kept.push(Kept {
                        query,
                        listing: listing.clone(),
                        arrived: Instant::now(),
                    });
                }
                return Ok(listing);
            }
            if self.commands().is_none() {
                return Err(Fault::failed("the agent is gone"));
            }
            if begun.elapsed() > PATIENCE {
                return Err(Fault::failed("the agent has not answered"));
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(20));
        }
    }

    /// Allows or forbids the agent to run code of the program for requests about its objects.
    ///
    /// # Errors
    /// The agent is gone.
    pub fn set_own_code(&self, on: bool) -> Result<(), String> {
        self.status.send_modify(|status| status.own_code = on);
        match self.commands() {
            Some(commands) => commands(Ask::OwnCode(on)),
            None => Ok(()),
        }
    }
}

/// Adds the allocating threads to rows, where they are recorded.
pub fn add_contexts(live: &Live, rows: &mut [Instance]) {
    live.recorded(|recorded| {
        if let Some(profile) = recorded.profile() {
            listed::add_contexts(profile, rows);
        }
    });
}

fn excluded(_: Excluded) -> Fault {
    Fault::not_found("the class filters exclude this class, or it is not loaded")
}

/// The live instances of a class.
///
/// # Errors
/// No agent is connected, it does not answer, or the class filters exclude the class.
pub fn list(live: &Live, class: &str, query: &Query) -> Result<Found<Instance>, Fault> {
    let mut ask = match query.page.sort.as_str() {
        "rank" => ORDER,
        "hash" => HASH,
        _ => 0,
    };
    if query.value_limit > 0 {
        ask |= TEXT;
    }
    let question = question(class, query, ask, query.value_limit.max(1));
    let page = match query.page.offset {
        0 => Page::First,
        _ => Page::Later,
    };
    let listing = live.listing(question, page)?;
    live.recorded(|recorded| listed::list(recorded.profile(), query, listing))
        .map_err(excluded)
}

/// The live instances of a class, counted by a common property.
///
/// # Errors
/// Those of [`list`].
pub fn groups(live: &Live, class: &str, uniq: Uniq, query: &Query) -> Result<Found<Group>, Fault> {
    let ask = match uniq {
        Uniq::Value => EQUAL | TEXT,
        Uniq::Text => TEXT,
        Uniq::HashCode => HASH,
        Uniq::Stack | Uniq::Class | Uniq::Size(_) | Uniq::Time(_) => 0,
    };
    let question = question(class, query, ask, GROUP_TEXT as usize);
    let listing = live.listing(question, Page::None)?;
    live.recorded(|recorded| listed::groups(recorded.profile(), (class, uniq), query, listing))
        .map_err(excluded)
}
